exports.handle = async (event, context) => {
  if (event.fail) throw new Error("asked to fail");
  return { sum: (event.numbers || []).reduce((a, b) => a + b, 0) };
};
