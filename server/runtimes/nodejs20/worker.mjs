// The worker of runtime nodejs20: loads one handler and speaks frames with sless-runner (docs/runner.md).
//
// Started as: node worker.mjs CODE_DIR DEPS_DIR ENTRYPOINT CONCURRENCY
// Packages of the dependency layer are found by Node itself: the layer's node_modules lies in a folder above the code.

import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire } from 'node:module';
import { StringDecoder } from 'node:string_decoder';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { types } from 'node:util';

const FRAME_FD = 3;
const MAX_FRAME = 32 * 1024 * 1024;
const MAX_RESULT = 8 * 1024 * 1024;
const MAX_LINE = 16 * 1024;

const [codeDir, , entrypoint, concurrencyText] = process.argv.slice(2);
const concurrency = Number(concurrencyText);
const reallyExit = process.exit.bind(process);
const calls = new Map(); // id -> call
const storage = new AsyncLocalStorage();
let handler = null;
let handlerFile = '';
let stopping = false;

// ---------------------------------------------------------------------------------------------------------------- frames

// The code may do to JSON what it likes.
const { stringify: toText, parse: fromText } = JSON;

// Half a surrogate pair would pass here as an escape, and the runner would refuse the head.
const wellFormed = (_, value) => (typeof value === 'string' ? value.toWellFormed() : value);

const nap = new Int32Array(new SharedArrayBuffer(4));

// Synchronous: a line that was printed must be out before the process can end, and lines keep their order before the result.
function send(head, payload = Buffer.alloc(0)) {
  const text = Buffer.from(toText(head, wellFormed));
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(text.length, 0);
  lengths.writeUInt32BE(payload.length, 4);
  const data = Buffer.concat([lengths, text, payload]);
  for (let at = 0; at < data.length; ) {
    try {
      at += fs.writeSync(FRAME_FD, data, at, data.length - at);
    } catch (error) {
      if (error.code === 'EAGAIN') Atomics.wait(nap, 0, 0, 1);
      else reallyExit(0); // the runner has gone
    }
  }
}

function listen() {
  const socket = new net.Socket({ fd: FRAME_FD, readable: true, writable: false });
  let parts = [];
  let have = 0;
  const whole = () => {
    if (parts.length > 1) parts = [Buffer.concat(parts)];
    return parts[0];
  };
  socket.on('data', (chunk) => {
    parts.push(chunk);
    have += chunk.length;
    while (have >= 8) {
      if (parts[0].length < 8) whole();
      const headSize = parts[0].readUInt32BE(0);
      const payloadSize = parts[0].readUInt32BE(4);
      const size = 8 + headSize + payloadSize;
      if (size > MAX_FRAME + 8) reallyExit(1);
      if (have < size) return;
      const data = whole();
      const head = fromText(data.toString('utf8', 8, 8 + headSize));
      const payload = data.toString('utf8', 8 + headSize, size);
      parts = data.length > size ? [data.subarray(size)] : [];
      have -= size;
      receive(head, payload);
    }
  });
  socket.on('close', () => reallyExit(0));
  socket.on('error', () => reallyExit(0));
}

function receive(head, payload) {
  if (head.type === 'call') begin(head, payload);
  else if (head.type === 'cancel') calls.get(head.id)?.abort.abort(new Error('the call was cancelled'));
  else if (head.type === 'ping') send({ type: 'pong', id: head.id });
  else if (head.type === 'stop') {
    stopping = true;
    if (calls.size === 0) reallyExit(0);
  }
}

// ------------------------------------------------------------------------------------------------------------------ logs

// The call that runs this code. What outlived its call, or nobody's call started, belongs to the only running call where there can
// be but one.
function current() {
  const call = storage.getStore();
  if (call && !call.done) return call;
  return concurrency === 1 && calls.size === 1 ? calls.values().next().value : undefined;
}

const partial = { stdout: new Map(), stderr: new Map() };

function sendLine(stream, id, line) {
  for (const piece of line.length <= MAX_LINE / 4 ? [line] : cut(line)) send({ type: 'log', id, stream, line: piece });
}

// A line in pieces of at most MAX_LINE bytes, cut between characters.
function cut(line) {
  const data = Buffer.from(line);
  const pieces = [];
  let begin = 0;
  while (data.length - begin > MAX_LINE) {
    let end = begin + MAX_LINE;
    while ((data[end] & 0xc0) === 0x80) end--;
    pieces.push(data.toString('utf8', begin, end));
    begin = end;
  }
  pieces.push(data.toString('utf8', begin));
  return pieces;
}

function capture(stream) {
  const target = process[stream];
  const decoder = new StringDecoder('utf8'); // a character may come in pieces
  target.write = (chunk, encoding, done) => {
    const text =
      typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    const id = current()?.id ?? 0;
    const lines = ((partial[stream].get(id) ?? '') + text).split('\n');
    let rest = lines.pop();
    if (rest.length > MAX_LINE) {
      const pieces = cut(rest);
      rest = pieces.pop();
      lines.push(...pieces);
    }
    if (rest) partial[stream].set(id, rest);
    else partial[stream].delete(id);
    for (const line of lines) sendLine(stream, id, line);
    const callback = typeof encoding === 'function' ? encoding : done;
    if (callback) process.nextTick(callback);
    return true;
  };
  target.end = () => target; // the function's log stays open whatever the code does
  target.destroy = () => target;
}

function finishLines(id) {
  for (const stream of ['stdout', 'stderr']) {
    const rest = partial[stream].get(id);
    partial[stream].delete(id);
    if (rest) sendLine(stream, id, rest);
  }
}

// ---------------------------------------------------------------------------------------------------------------- errors

// What the code did is JavaScript, but not what a handler may do; the message says all.
class ContractError extends Error {
  constructor(message, file = '', line = 0) {
    super(message);
    this.file = file;
    this.line = line;
  }
}

// The handler cannot be loaded.
class EntrypointError extends ContractError {
  name = 'EntrypointError';
}

// The handler returned what JSON cannot hold.
class BadResult extends ContractError {
  name = 'BadResult';
  constructor(message) {
    super(message, handlerFile);
  }
}

// "/var/task/lib/a.js" -> "lib/a.js"; undefined for what is not the function's own.
function own(place) {
  if (place.startsWith('file://')) {
    try {
      place = fileURLToPath(place);
    } catch {
      return undefined;
    }
  }
  if (!path.isAbsolute(place)) return undefined; // "node:internal/…"
  const relative = path.relative(codeDir, place);
  if (!relative || relative.startsWith('..') || path.isAbsolute(relative)) return undefined;
  return relative.split(path.sep).includes('node_modules') ? undefined : relative;
}

function describe(error) {
  try {
    return describeWell(error);
  } catch { // getters and toString of the code run in there
    return { type: '', message: 'the handler threw what cannot be shown', file: '', line: 0, trace: [] };
  }
}

function describeWell(error) {
  if (!(error instanceof Error)) {
    let text;
    try {
      text = typeof error === 'string' ? error : toText(error) ?? String(error);
    } catch {
      text = String(error);
    }
    const kind = error === null || error === undefined ? 'what is' : `${typeof error === 'object' ? 'an' : 'a'} ${typeof error} that is`;
    return { type: 'Thrown', message: `the handler threw ${kind} no Error: ${text}`.slice(0, MAX_LINE), file: '', line: 0, trace: [] };
  }
  const type = String(error.name || error.constructor?.name || 'Error');
  const importer = /imported from (\S+)/.exec(error.message);
  const missing = error.code === 'MODULE_NOT_FOUND' || error.code === 'ERR_MODULE_NOT_FOUND';
  const text = String(error.message).replaceAll(codeDir + path.sep, '').slice(0, MAX_LINE);
  const first = error instanceof AggregateError && error.errors?.[0] instanceof Error ? error.errors[0] : undefined;
  const tail = first ? `; the first is ${first.name}: ${first.message}` : '';
  const message = (missing ? text.split('\n')[0] : text) + tail; // then comes Node's list of who required whom
  if (error instanceof ContractError) return { type, message, file: error.file, line: error.line, trace: [] };
  const found = { file: (importer && own(importer[1])) || '', line: 0 };
  const trace = [`${type}: ${message.split('\n')[0]}`];
  let e = error;
  for (let depth = 0; e instanceof Error && depth < 5; depth++, e = e.cause ?? (depth === 1 ? first : undefined)) {
    if (depth > 0) trace.push(`caused by ${e.name}: ${String(e.message).split('\n')[0]}`);
    for (const line of String(e.stack).split('\n')) {
      // Of code made by eval: where the eval stands.
      const made = /eval at .*?\(((?:file:\/\/)?\/[^()]*):(\d+):(\d+)\)/.exec(line);
      // "/var/task/a.js:3" alone on the first line: where a syntax error lies; else "    at f (place:line:column)".
      const match = made ? [line, '', ...made.slice(1)] : /^\s*at (?:(.*) \()?(.*?):(\d+):(\d+)\)?$/.exec(line) ?? (/^((?:file:\/\/)?\/.*):(\d+)$/.exec(line) || null);
      if (!match) continue;
      const [place, number, name] = match.length === 5 ? [match[2].replace(/^async /, ''), match[3], match[1]] : [match[1], match[2], ''];
      const file = own(place);
      if (file === undefined) continue;
      if (!found.line) {
        found.file = file;
        found.line = Number(number);
      }
      if (trace.length < 60) trace.push(`    at ${name ? `${name} (${file}:${number})` : `${file}:${number}`}`);
    }
  }
  return { type, message, ...found, trace };
}

// ----------------------------------------------------------------------------------------------------------------- calls

// What a handler learns about its call.
class Context {
  constructor(facts, signal, call) {
    this.requestId = facts.requestId;
    this.deadlineMs = facts.deadlineMs;
    this.function = facts.function;
    this.revision = facts.revision;
    this.memoryMb = facts.memoryMb;
    this.source = facts.source;
    // Aborted when the time is up or the caller has gone.
    Object.defineProperty(this, 'signal', { value: signal });
    Object.defineProperty(this, 'logger', {
      value: Object.fromEntries(
        ['debug', 'info', 'warn', 'error'].map((level) => [
          level,
          (...args) => storage.run(call, () => console.error(level.toUpperCase(), ...args)),
        ]),
      ),
    });
  }
  get deadline() {
    return new Date(this.deadlineMs);
  }
  // Milliseconds until the call is ended from outside; never negative.
  remainingMs() {
    return Math.max(0, this.deadlineMs - Date.now());
  }
  getRemainingTimeInMillis() {
    return this.remainingMs();
  }
}

function begin(head, payload) {
  const call = { id: head.id, abort: new AbortController(), done: false };
  calls.set(call.id, call);
  storage.run(call, async () => {
    try {
      const event = fromText(payload);
      const context = new Context(head.context ?? {}, call.abort.signal, call);
      succeed(call, toJson(await handler(event, context)));
    } catch (error) {
      fail(call, error);
    }
  });
}

function end(call) {
  if (call.done) return false;
  finishLines(call.id);
  call.done = true;
  calls.delete(call.id);
  return true;
}

function succeed(call, value) {
  if (end(call)) send({ type: 'result', id: call.id }, value);
  if (stopping && calls.size === 0) reallyExit(0);
}

function fail(call, error) {
  const described = describe(error);
  if (end(call)) send({ type: 'error', id: call.id, error: described });
  if (stopping && calls.size === 0) reallyExit(0);
}

function toJson(value) {
  if (value === undefined) value = null; // a handler without `return`
  const problem = findBad(value);
  if (problem) throw new BadResult(problem);
  let text;
  try {
    text = toText(value);
  } catch (error) {
    throw new BadResult(`the handler's result is no JSON: ${error.message.split('\n')[0]}`);
  }
  if (text === undefined) throw new BadResult(`the handler's result is a ${typeof value}, which JSON cannot hold`);
  const bytes = Buffer.from(text);
  if (bytes.length > MAX_RESULT) {
    throw new BadResult(`the handler's result has ${bytes.length} bytes of JSON, at most ${MAX_RESULT} are allowed`);
  }
  return bytes;
}

// What JSON.stringify makes an empty object of.
function lossy(item) {
  if (types.isPromise(item)) return ['Promise', 'await it'];
  if (types.isMap(item) || types.isSet(item)) return [item.constructor.name, 'make it an object or array'];
  if (types.isGeneratorObject(item)) return ['generator', 'make it an array'];
  if (types.isNativeError(item)) return [item.name, 'throw it, or return its message'];
  if (types.isRegExp(item)) return ['RegExp', 'return its source'];
  if (types.isWeakMap(item) || types.isWeakSet(item)) return [item.constructor.name, 'nobody can list it'];
  // Objects of the platform that keep all they have inside: Response, Headers, URLSearchParams, Blob, …
  const tag = Object.prototype.toString.call(item).slice(8, -1);
  if (['Object', 'Array', 'Number', 'String', 'Boolean'].includes(tag) || Object.keys(item).length > 0) return [];
  return [tag, tag === 'Response' ? 'return { statusCode, headers, body }' : 'make plain values of it'];
}

// JSON.stringify writes null for NaN and leaves functions out, without a word; a wrong answer is worse than an error.
function findBad(value) {
  const pending = [[value, 'result', 0]];
  for (let seen = 0; pending.length > 0 && seen < 1_000_000; seen++) {
    const [item, place, depth] = pending.pop();
    if (depth > 200) return `the handler's result is nested too deep or holds itself, at ${place.slice(0, 80)}…`;
    if (typeof item === 'number' && !Number.isFinite(item)) {
      return `the handler's result holds ${item} at ${place}; JSON has no such number`;
    }
    if (typeof item === 'string' && !item.isWellFormed()) {
      return `the handler's result holds half a surrogate pair at ${place}; that is no valid text, cut it between characters`;
    }
    if (typeof item === 'function' || typeof item === 'symbol' || typeof item === 'bigint') {
      const hint = typeof item === 'bigint' ? '; use Number() or String()' : '';
      return `the handler's result holds a ${typeof item} at ${place}, which JSON cannot hold${hint}`;
    }
    if (item === null || typeof item !== 'object') continue;
    if (ArrayBuffer.isView(item) || types.isAnyArrayBuffer(item)) { // a Buffer has a toJSON, which nobody wants
      return `the handler's result holds bytes (${item.constructor.name}) at ${place}; encode them, e.g. with base64`;
    }
    if (typeof item.toJSON === 'function') continue;
    const [kind, hint] = lossy(item);
    if (kind) return `the handler's result holds a ${kind} at ${place}, which JSON cannot hold; ${hint}`;
    if (Array.isArray(item)) item.forEach((inner, i) => pending.push([inner, `${place}[${i}]`, depth + 1]));
    else for (const key of Object.keys(item)) pending.push([item[key], `${place}.${key}`, depth + 1]);
  }
  return null;
}

// ----------------------------------------------------------------------------------------------- what must not end the worker

class ExitCalled extends Error {
  name = 'ExitCalled';
}

process.exit = (code) => {
  const error = new ExitCalled(`the handler called process.exit(${code ?? ''})`);
  const call = current();
  if (call) fail(call, error);
  throw error; // stops the code that wanted to exit
};

function stray(kind, error) {
  if (error instanceof ExitCalled && !handler) throw error;
  const call = current();
  if (call) fail(call, error);
  else if (!(error instanceof ExitCalled)) {
    const seen = describe(error);
    for (const line of [`${kind} outside of a call`, ...(seen.trace.length ? seen.trace : [seen.message])]) sendLine('stderr', 0, line);
  }
}

// ----------------------------------------------------------------------------------------------------------------- start

function findFile(file) {
  for (const ending of ['.js', '.mjs', '.cjs']) {
    const full = path.join(codeDir, file + ending);
    if (fs.existsSync(full)) return full;
  }
  const typescript = fs.existsSync(path.join(codeDir, `${file}.ts`)) ? `; ${file}.ts is TypeScript: compile it to JavaScript first` : '';
  throw new EntrypointError(
    `entrypoint "${entrypoint}": there is no file ${file}.js, ${file}.mjs or ${file}.cjs in the code${typescript}`,
  );
}

async function load() {
  const dot = entrypoint.lastIndexOf('.');
  const [file, name] = [entrypoint.slice(0, dot), entrypoint.slice(dot + 1)];
  if (dot <= 0 || !name || file.split('/').includes('..')) throw new EntrypointError(`entrypoint "${entrypoint}": want "file.function"`);
  const full = findFile(file);
  const relative = path.relative(codeDir, full);
  handlerFile = relative;
  globalThis.require ??= undefined;
  delete globalThis.require;
  process.argv = [process.argv[0], full];
  const module = full.endsWith('.cjs') ? createRequire(full)(full) : await import(pathToFileURL(full).href);
  const found = module[name] ?? module.default?.[name] ?? (name === 'default' ? module.default : undefined);
  if (typeof found === 'function') {
    // An async function has no use for a callback that it may name.
    if (found.length <= 2 || found instanceof (async () => {}).constructor) return found;
    throw new EntrypointError(
      `entrypoint "${entrypoint}": want a function of (event, context) or (event), but this one takes ${found.length} parameters; a result is returned, there is no callback`,
      relative,
    );
  }
  if (found !== undefined) {
    throw new EntrypointError(`entrypoint "${entrypoint}": "${name}" in ${relative} is a ${typeof found}, want a function`, relative);
  }
  const scope = { ...module, ...(typeof module.default === 'object' ? module.default : {}) };
  const names = Object.keys(scope).filter((key) => typeof scope[key] === 'function');
  const has = names.length ? `; it exports ${names.sort().slice(0, 10).join(', ')}` : '; it exports no function';
  throw new EntrypointError(`entrypoint "${entrypoint}": ${relative} exports no function "${name}"${has}`, relative);
}

// V8 tells where a module's syntax error lies only on stderr of a process that dies of it.
async function locateSyntaxError(described) {
  const { spawnSync } = await import('node:child_process');
  const files = [];
  const walk = (dir, depth) => {
    for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
      if (files.length >= 50) return;
      const full = path.join(dir, entry.name);
      if (entry.isDirectory() && entry.name !== 'node_modules' && depth < 8) walk(full, depth + 1);
      else if (entry.isFile() && /\.[mc]?js$/.test(entry.name)) files.push(full);
    }
  };
  walk(codeDir, 0);
  const entry = path.join(codeDir, entrypoint.slice(0, entrypoint.lastIndexOf('.')));
  files.sort((a, b) => Number(b.startsWith(entry)) - Number(a.startsWith(entry)));
  const until = Date.now() + 5000;
  for (const file of files) {
    if (Date.now() > until) return;
    const check = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: 2000, env: {} });
    const lines = (check.stderr ?? '').split('\n');
    const match = /^(?:file:\/\/)?(\/.*):(\d+)$/.exec(lines[0] ?? '');
    if (check.status !== 0 && match && own(match[1]) !== undefined) {
      described.file = own(match[1]);
      described.line = Number(match[2]);
      described.trace.push(`    at ${described.file}:${described.line}`, ...lines.slice(1, 3).map((line) => `    ${line}`));
      return;
    }
  }
}

async function start() {
  capture('stdout');
  capture('stderr');
  process.on('unhandledRejection', (error) => stray('unhandled rejection', error));
  process.on('uncaughtException', (error) => stray('uncaught exception', error));
  let loading = true;
  process.once('exit', () => {
    if (!loading) return;
    const message = `entrypoint "${entrypoint}": an await at the top of the code never settles`;
    send({ type: 'init_error', error: { type: 'EntrypointError', message, file: handlerFile, line: 0, trace: [] } });
  });
  try {
    handler = await load();
  } catch (error) {
    loading = false;
    const described = describe(error);
    if (error instanceof ExitCalled) described.message = described.message.replace('the handler', `${entrypoint}: the code`) + ' while it was loaded';
    if (error?.code === 'MODULE_NOT_FOUND' || error?.code === 'ERR_MODULE_NOT_FOUND') {
      described.message += ' (packages are installed from a package.json at the top of the source)';
    }
    if (error instanceof SyntaxError && !described.file) await locateSyntaxError(described);
    finishLines(0);
    send({ type: 'init_error', error: described });
    reallyExit(1);
  }
  loading = false;
  finishLines(0);
  listen();
  send({ type: 'ready' });
}

await start();
