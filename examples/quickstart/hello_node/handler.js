// Greets whoever asks.
exports.handle = async (event, context) => {
  const query = event.queryStringParameters || {};
  const name = query.name || event.name || "world";
  console.log(`greeting ${name}`);
  return { message: `${process.env.GREETING}, ${name}, from Node` };
};
