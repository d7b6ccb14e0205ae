"""The worker of runtime python3.11: loads one handler and speaks frames with sless-runner (docs/runner.md).

Started as: python3.11 -I -S -B -X utf8 worker.py CODE_DIR DEPS_DIR ENTRYPOINT CONCURRENCY
Nothing but the standard library, and little of it before the first call: a cold start waits for these imports.
"""

import builtins
import codecs
import contextvars
import io
import json
import os
import struct
import sys
import threading
import time
from collections import deque

FRAME_FD = 3
MAX_FRAME = 32 * 1024 * 1024
MAX_RESULT = 8 * 1024 * 1024
MAX_LINE = 16 * 1024
MAX_TRACE = 100

PID = os.getpid()
to_text, from_text = json.dumps, json.loads  # whatever the code does to the module
CURRENT = contextvars.ContextVar("sless_call", default=None)


# ---------------------------------------------------------------------------------------------------------------- frames


class Channel:
    """The frame channel: two big-endian lengths, a head (JSON) and a payload (JSON text of an event or a value)."""

    def __init__(self, fd):
        # Moved away from 3, and closed in children: user code that closes or inherits low descriptors does not meet it.
        import fcntl

        self.fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)
        os.close(fd)
        self.lock = threading.RLock()  # a finalizer or a signal handler of the code may print in the middle of a send

    def send(self, head, payload=b""):
        if os.getpid() != PID:
            return  # a forked child must not speak for its parent
        # As UTF-8, half surrogate pairs replaced: as escapes they would pass here, and the runner would refuse the head.
        text = to_text(head, ensure_ascii=False).encode("utf-8", "replace")
        data = memoryview(struct.pack(">II", len(text), len(payload)) + text + payload)
        with self.lock:
            while data:
                data = data[os.write(self.fd, data) :]

    def receive(self):
        """-> (head, payload) or None when the runner closed the channel."""
        lengths = self._read(8)
        if lengths is None:
            return None
        head_size, payload_size = struct.unpack(">II", lengths)
        if head_size + payload_size > MAX_FRAME:
            return None
        head = self._read(head_size)
        payload = self._read(payload_size)
        if head is None or payload is None:
            return None
        return from_text(head), payload

    def _read(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = os.read(self.fd, min(size - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return bytes(parts)


# ------------------------------------------------------------------------------------------------------------------ logs


class LogStream(io.TextIOBase):
    """sys.stdout and sys.stderr: whole lines, each with the call that it comes from."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, worker, name, fd):
        self._worker, self._name, self._fd = worker, name, fd
        self._lock = threading.RLock()  # as the channel's
        self._partial = {}
        self.buffer = ByteStream(self)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if os.getpid() != PID:  # a forked child: the pipe is drained as well, without the call's id
            os.write(self._fd, text.encode("utf-8", "replace"))
            return len(text)
        with self._lock:
            # Asked under the lock: nobody would look for what came after finish().
            call = self._worker.calling()
            key = call.id if call else 0
            whole = self._partial.pop(key, "") + text
            lines = whole.split("\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE:
                *more, rest = cut(rest)
                lines += more
            if rest:
                self._partial[key] = rest
        for line in lines:
            self._send(key, line)
        return len(text)

    def finish(self, key):
        """A call ended: what it wrote without a newline is a line too."""
        with self._lock:
            rest = self._partial.pop(key, "")
        if rest:
            self._send(key, rest)

    def _send(self, key, line):
        for piece in [line] if len(line) <= MAX_LINE // 4 else cut(line):
            self._worker.channel.send({"type": "log", "id": key, "stream": self._name, "line": piece})

    def writable(self):
        return True

    def fileno(self):
        return self._fd

    def isatty(self):
        return False

    def flush(self):
        pass

    def close(self):
        pass  # the function's log stays open whatever the code does

    def reconfigure(self, **_):
        pass


def cut(line):
    """A line in pieces of at most MAX_LINE bytes, cut between characters."""
    data, pieces, begin = line.encode("utf-8", "replace"), [], 0
    while len(data) - begin > MAX_LINE:
        end = begin + MAX_LINE
        while data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(data[begin:end].decode())
        begin = end
    return pieces + [data[begin:].decode()]


class ByteStream(io.RawIOBase):
    """sys.stdout.buffer."""

    def __init__(self, text):
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may come in pieces

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        self._text.write(self._decoder.decode(data))
        return len(data)

    def fileno(self):
        return self._text.fileno()

    def close(self):
        pass


# ---------------------------------------------------------------------------------------------------- the standard library

KEPT = {}


def standard(name):
    """A module of the standard library that is imported when it is needed."""
    return KEPT.get(name) or __import__(name)


def keep_standard(code_dir, deps_dir):
    """Where files of the function have names of the standard library's modules, the code finds its own, but we find ours."""
    names = {entry.partition(".")[0] for folder in (code_dir, deps_dir) if os.path.isdir(folder) for entry in os.listdir(folder)}
    shadowed = names & sys.stdlib_module_names - set(sys.modules)
    if shadowed:
        for name in ("asyncio", "ctypes", "datetime", "inspect", "linecache", "logging", "traceback", "types"):
            KEPT[name] = __import__(name)
        for name in list(sys.modules):
            if name.partition(".")[0] in shadowed - {"asyncio"}:  # which looks itself up as it works
                del sys.modules[name]


# ---------------------------------------------------------------------------------------------------------------- errors


class CallCancelled(BaseException):
    """Raised inside a handler whose time is up or whose caller has gone."""


class ContractError(Exception):
    """What the code did is Python, but not what a handler may do; the message says all."""

    def __init__(self, message, file="", line=0):
        super().__init__(message)
        self.file, self.line = file, line


class EntrypointError(ContractError):
    """The handler cannot be loaded."""


class BadResult(ContractError):
    """The handler returned what JSON cannot hold. Its place is the handler's."""


def describe(error, code_dir, depth=0):
    """An exception as the contract's error object. Only frames of the function's own files are shown."""
    try:
        return describe_well(error, code_dir, depth)
    except Exception as trouble:  # user code runs in there: properties, __str__, metaclasses
        kind = type(trouble).__name__
        return {"type": "", "message": f"the handler raised an exception that cannot be shown ({kind})", "file": "", "line": 0, "trace": []}


def describe_well(error, code_dir, depth):
    linecache, traceback = standard("linecache"), standard("traceback")

    def relative(name):
        if isinstance(name, str) and name.startswith(code_dir + os.sep):
            return name[len(code_dir) + 1 :]
        return None

    file, line, trace = "", 0, []
    chain, seen = [], set()
    e = error
    while e is not None and id(e) not in seen and len(chain) < 5:
        seen.add(id(e))
        chain.append(e)
        e = e.__cause__ or (None if e.__suppress_context__ else e.__context__)
    for e in reversed(chain):
        frames = []
        for frame, number in traceback.walk_tb(e.__traceback__):
            name = relative(frame.f_code.co_filename)
            if name is not None:
                frames.append((name, number, frame.f_code.co_name, frame.f_code.co_filename))
        if len(frames) > 20:  # a recursion: its begin and its end tell enough
            frames = frames[:10] + frames[-10:]
        if trace:
            trace.append("During handling of the above, or caused by it:")
        if frames:
            trace.append("Traceback (most recent call last):")
        for name, number, function, path in frames:
            trace.append(f'  File "{name}", line {number}, in {function}')
            source = linecache.getline(path, number).strip()
            if source:
                trace.append("    " + source)
        if e is error:
            if isinstance(e, SyntaxError) and relative(e.filename) is not None:
                file, line = relative(e.filename), e.lineno or 0
                trace.append(f'  File "{file}", line {line}')
                if isinstance(e.text, str):
                    trace.append("    " + e.text.strip())
            elif isinstance(e, ContractError):
                file, line = e.file, e.line
            elif frames:
                file, line = frames[-1][0], frames[-1][1]
        if not isinstance(e, ContractError):
            trace.append(f"{type(e).__name__}: {message_of(e)}"[:MAX_LINE])
            notes = getattr(e, "__notes__", None)
            trace += [str(note)[:MAX_LINE] for note in notes[:10]] if isinstance(notes, list) else []
        if isinstance(e, BaseExceptionGroup) and depth < 3:
            for inner in e.exceptions[:5]:
                trace.append("One of them:")
                trace += describe(inner, code_dir, depth + 1)["trace"][-20:]
    return {
        "type": type(error).__name__,
        "message": message_of(error)[:MAX_LINE],
        "file": file,
        "line": line,
        "trace": trace[-MAX_TRACE:],
    }


def message_of(error):
    if isinstance(error, SystemExit):
        return f"the handler called sys.exit({'' if error.code is None else repr(error.code)})"
    if isinstance(error, CallCancelled):
        return "the call was cancelled"
    if isinstance(error, SyntaxError):
        return str(error.msg)
    try:
        text = str(error)
        if isinstance(error, BaseExceptionGroup):
            first = error.exceptions[0]
            text += f"; the first is {type(first).__name__}: {message_of(first)}"
        return text
    except BaseException:  # a __str__ of user code that raises
        return "(its text cannot be shown)"


# ------------------------------------------------------------------------------------------------------------------ JSON


def to_json(value):
    """The JSON text of a handler's result; BadResult says what is in the way and where."""
    try:
        text = to_text(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise BadResult(find_bad(value) or f"the handler's result is no JSON: {error}") from None
    if len(text) > MAX_RESULT:
        raise BadResult(f"the handler's result has {len(text)} bytes of JSON, at most {MAX_RESULT} are allowed")
    return text


def find_bad(value):
    """Where in `value` lies the first thing that JSON cannot hold."""
    pending, seen = deque([(value, "result", 0)]), 0
    while pending and seen < 1_000_000:
        item, path, depth = pending.popleft()
        seen += 1
        if depth > 200:
            return f"the handler's result is nested too deep or holds itself, at {path[:80]}…"
        if isinstance(item, float) and (item != item or item in (float("inf"), float("-inf"))):
            return f"the handler's result holds {item} at {path}; JSON has no such number"
        if isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError:
                return f"the handler's result holds half a surrogate pair at {path}; that is no valid text"
        elif isinstance(item, dict):
            for key, inner in item.items():
                if not isinstance(key, (str, int, float, bool, type(None))):
                    return f"the handler's result has a key of type {type(key).__name__} at {path}; JSON keys are strings"
                pending.append((inner, f"{path}[{key!r}]", depth + 1))
        elif isinstance(item, (list, tuple)):
            for i, inner in enumerate(item):
                pending.append((inner, f"{path}[{i}]", depth + 1))
        elif not isinstance(item, (int, float, bool, type(None))):
            hint = {
                "bytes": "; decode it, or encode it with base64",
                "set": "; make it a list",
                "datetime": "; use .isoformat()",
                "Decimal": "; use str() or float()",
            }.get(type(item).__name__, "")
            return f"the handler's result holds a value of type {type(item).__name__} at {path}, which JSON cannot hold{hint}"
    return None


# ----------------------------------------------------------------------------------------------------------------- calls


class Context:
    """What a handler learns about its call."""

    def __init__(self, facts):
        self.request_id = facts.get("requestId", "")
        self.deadline_ms = facts.get("deadlineMs", 0)
        self.function = facts.get("function", "")
        self.revision = facts.get("revision", 0)
        self.memory_mb = facts.get("memoryMb", 0)
        self.source = facts.get("source", "")
        self._logger = None

    def remaining_ms(self):
        """Milliseconds until the call is ended from outside; never negative."""
        return max(0, int(self.deadline_ms - time.time() * 1000))

    get_remaining_time_in_millis = remaining_ms

    @property
    def deadline(self):
        """The deadline as an aware datetime, UTC."""
        datetime = standard("datetime")
        return datetime.datetime.fromtimestamp(self.deadline_ms / 1000, datetime.timezone.utc)

    @property
    def logger(self):
        """A logging.Logger whose lines go to the function's log, from INFO on."""
        if self._logger is None:
            logging = standard("logging")
            logger = logging.getLogger("sless.function")
            if not logger.handlers:
                handler = logging.StreamHandler(sys.stderr)
                handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
                logger.addHandler(handler)
                logger.setLevel(logging.INFO)
                logger.propagate = False
            self._logger = logger
        return self._logger

    def __repr__(self):
        return f"Context(request_id={self.request_id!r}, function={self.function!r}, revision={self.revision})"


class Call:
    def __init__(self, head, payload):
        self.id = head["id"]
        self.context = Context(head.get("context", {}))
        self.payload = payload
        self.thread = None  # ident of the thread that runs a sync handler, while it runs
        self.task = None
        self.begun = False  # its task
        self.cancelled = False
        self.done = False
        self.lock = threading.Lock()


class Worker:
    def __init__(self, code_dir, deps_dir, entrypoint, concurrency):
        self.code_dir, self.deps_dir, self.entrypoint = code_dir, deps_dir, entrypoint
        self.concurrency = concurrency
        self.channel = Channel(FRAME_FD)
        self.calls = {}
        self.calls_lock = threading.Lock()
        self.queue = deque()
        self.ready = threading.Semaphore(0)
        self.stopping = False
        self.answering = 0  # calls that ended, with their answer on its way
        self.loop = None
        self.place = ("", 0)  # file and line of the handler
        self.out = LogStream(self, "stdout", 1)
        self.err = LogStream(self, "stderr", 2)

    # Which call does this code belong to? A thread that outlived its call, or that nobody's call started, belongs to the
    # only running call where there can be but one.
    def calling(self):
        call = CURRENT.get()
        if call is None:
            call = getattr(threading.current_thread(), "_sless_call", None)
        if call is not None and not call.done:
            return call
        if self.concurrency == 1:
            with self.calls_lock:
                if len(self.calls) == 1:
                    return next(iter(self.calls.values()))
        return None

    # ------------------------------------------------------------------------------------------------------------- start

    def start(self):
        sys.stdout, sys.stderr = self.out, self.err
        sys.__stdout__, sys.__stderr__ = self.out, self.err
        follow_threads(self)
        try:
            handler = self.load()
        except BaseException as error:
            if isinstance(error, SystemExit):
                error = EntrypointError(
                    f"{self.entrypoint}: the code called sys.exit({error.code!r}) while it was loaded", *self.own_frame(error)
                )
            self.out.finish(0), self.err.finish(0)
            described = describe(error, self.code_dir)
            if isinstance(error, ModuleNotFoundError):
                described["message"] += " (packages are installed from a requirements.txt at the top of the source)"
            self.channel.send({"type": "init_error", "error": described})
            os._exit(1)
        self.out.finish(0), self.err.finish(0)
        follow_pools(self)
        if is_async(handler):
            self.run_loop(handler)
        else:
            self.run_threads(handler)

    def own_frame(self, error):
        seen = describe(error, self.code_dir)
        return seen["file"], seen["line"]

    def load(self):
        file, _, name = self.entrypoint.rpartition(".")
        path = os.path.join(self.code_dir, file + ".py")
        if not file or not name or ".." in file.split("/"):
            raise EntrypointError(f'entrypoint {self.entrypoint!r}: want "file.function"')
        if not os.path.isfile(path):
            raise EntrypointError(f"entrypoint {self.entrypoint!r}: there is no file {file}.py in the code")
        import importlib
        import importlib.util
        import site

        keep_standard(self.code_dir, self.deps_dir)
        sys.path[:0] = [p for p in (self.code_dir, self.deps_dir) if p]
        if self.deps_dir:
            known = sys.path[:]
            site.addsitedir(self.deps_dir)  # for .pth files of packages
            sys.path[:] = known + [p for p in sys.path if p not in known]
        builtins.exit = builtins.quit = sys.exit  # `site`, which brings them, is not loaded
        sys.argv = [path]
        sys.dont_write_bytecode = True

        module_name = file.replace("/", ".")
        folder = file.partition("/")[0]
        hidden = folder in sys.modules or not os.path.isfile(os.path.join(self.code_dir, folder, "__init__.py"))
        if "/" in file and not (folder in sys.stdlib_module_names and hidden):
            module = importlib.import_module(module_name)
        else:
            # By path: a handler's file or folder may have the name of a module of the standard library, which comes first.
            spec = importlib.util.spec_from_file_location(module_name, path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[module_name] = module
            spec.loader.exec_module(module)
        handler = getattr(module, name, None)
        if handler is None:
            types = standard("types")
            names = [n for n, v in vars(module).items() if isinstance(v, types.FunctionType) and not n.startswith("_")]
            found = f"; it has {', '.join(sorted(names)[:10])}" if names else "; it has no functions"
            raise EntrypointError(f"entrypoint {self.entrypoint!r}: {file}.py has no function {name!r}{found}", file + ".py")
        if not callable(handler):
            raise EntrypointError(
                f"entrypoint {self.entrypoint!r}: {name!r} in {file}.py is a {type(handler).__name__}, want a function", file + ".py"
            )
        code = getattr(handler, "__code__", None)
        own = code is not None and code.co_filename == path
        self.place = (file + ".py", code.co_firstlineno if own else 0)
        return with_two_arguments(handler, self.entrypoint, file + ".py")

    # -------------------------------------------------------------------------------------------------------------- sync

    def run_threads(self, handler):
        for i in range(1, self.concurrency):
            threading.Thread(target=self.work, args=(handler,), name=f"sless-{i}", daemon=True).start()
        threading.Thread(target=self.read_frames, args=(self.enqueue, self.cancel_thread, self.pong), name="sless-frames", daemon=True).start()
        self.channel.send({"type": "ready"})
        self.work(handler)  # the main thread takes calls too: with concurrency 1 handlers may use signals

    def enqueue(self, call):
        self.queue.append(call)
        self.ready.release()

    def work(self, handler):
        while True:
            call = None
            try:
                self.ready.acquire()
                if not self.queue:
                    return  # stop
                call = self.queue.popleft()
                self.run_call(handler, call)
            except (CallCancelled, KeyboardInterrupt):
                # The cancel arrived after its call had ended, or between two steps of ours.
                if call is not None:
                    self.fail(call, CallCancelled())

    def run_call(self, handler, call):
        token = CURRENT.set(call)
        try:
            with call.lock:
                if call.cancelled:
                    raise CallCancelled()
                call.thread = threading.get_ident()
            try:
                event = from_text(call.payload)
                call.payload = None
                value = handler(event, call.context)
                if hasattr(value, "__await__"):  # a plain function that returned a coroutine
                    value = standard("asyncio").run(awaited(value))
                value = to_json(value)
            finally:
                with call.lock:
                    call.thread = None
                    if call.cancelled:
                        self.raise_in_thread(threading.get_ident(), None)  # what is still to come would break our answer
            self.succeed(call, value)
        except BaseException as error:
            self.fail(call, error)
        finally:
            CURRENT.reset(token)

    def cancel_thread(self, call):
        with call.lock:
            call.cancelled = True
            if call.thread is not None:
                ctypes = standard("ctypes")
                # Takes effect at the thread's next Python instruction; a blocking call in C goes on (the runner then kills us).
                self.raise_in_thread(call.thread, ctypes.py_object(CallCancelled))

    def raise_in_thread(self, ident, exception):
        ctypes = standard("ctypes")
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), exception)

    # ------------------------------------------------------------------------------------------------------------- async

    def run_loop(self, handler):
        asyncio = standard("asyncio")

        async def serve():
            self.loop = asyncio.get_running_loop()
            reader = threading.Thread(
                target=self.read_frames,
                args=(
                    lambda call: self.loop.call_soon_threadsafe(self.start_task, handler, call),
                    lambda call: self.loop.call_soon_threadsafe(self.cancel_task, call),
                    # By the loop, after the task that was cancelled before: it tells whether the loop turns.
                    lambda number: self.loop.call_soon_threadsafe(self.loop.call_soon, self.pong, number),
                ),
                name="sless-frames",
                daemon=True,
            )
            reader.start()
            self.channel.send({"type": "ready"})
            await asyncio.Event().wait()

        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        serving = loop.create_task(serve())
        while True:
            try:
                loop.run_until_complete(serving)
            except (SystemExit, KeyboardInterrupt) as error:
                # asyncio lets these out of a task that the code has left behind, and stops its loop.
                print(f"a background task ended with {type(error).__name__}", file=sys.stderr)

    def start_task(self, handler, call):
        token = CURRENT.set(call)
        try:
            call.task = self.loop.create_task(self.run_task(handler, call))
        finally:
            CURRENT.reset(token)

    async def run_task(self, handler, call):
        try:
            call.begun = True
            if call.cancelled:
                raise CallCancelled()
            event = from_text(call.payload)
            call.payload = None
            value = to_json(await handler(event, call.context))
            self.succeed(call, value)
        except BaseException as error:
            asyncio = standard("asyncio")
            self.fail(call, CallCancelled() if isinstance(error, asyncio.CancelledError) and call.cancelled else error)

    def cancel_task(self, call):
        call.cancelled = True
        if call.begun:  # one that has not would be ended before its first line, and nobody would answer
            call.task.cancel()

    # --------------------------------------------------------------------------------------------------------------- end

    def succeed(self, call, value):
        if os.getpid() != PID:
            os._exit(0)  # a child that the handler forked, which came out of it too
        self.end(call, {"type": "result", "id": call.id}, value)

    def fail(self, call, error):
        if os.getpid() != PID:
            end_child(error)
        if isinstance(error, BadResult):
            error.file, error.line = self.place
        self.end(call, {"type": "error", "id": call.id, "error": describe(error, self.code_dir)})

    def end(self, call, head, payload=b""):
        with self.calls_lock:
            if self.calls.pop(call.id, None) is None:
                return
            call.done = True
            self.answering += 1
        try:
            self.out.finish(call.id)
            self.err.finish(call.id)
            self.channel.send(head, payload)
        except Exception:
            # The code has broken what we answer by: nothing else would ever be answered either.
            os._exit(1)
        finally:
            with self.calls_lock:
                self.answering -= 1
        self.exit_if_done()

    def pong(self, number):
        self.channel.send({"type": "pong", "id": number})

    def read_frames(self, begin, cancel, pong):
        while True:
            frame = self.channel.receive()
            if frame is None:
                os._exit(0)  # the runner has gone
            head, payload = frame
            kind = head.get("type")
            if kind == "call":
                call = Call(head, payload)
                with self.calls_lock:
                    self.calls[call.id] = call
                begin(call)
            elif kind == "cancel":
                with self.calls_lock:
                    call = self.calls.get(head.get("id"))
                if call is not None:
                    cancel(call)
            elif kind == "ping":
                pong(head.get("id"))
            elif kind == "stop":
                # No further call comes. What still runs may be cancelled yet, so we go on reading; the last one ends us.
                with self.calls_lock:
                    self.stopping = True
                self.exit_if_done()

    def exit_if_done(self):
        with self.calls_lock:
            done = self.stopping and not self.calls and not self.answering
        if done:
            os._exit(0)


def end_child(error):
    """Ends a forked child of the handler as Python would have, where it came out of the handler with an exception."""
    code = error.code if isinstance(error, SystemExit) else 1
    try:
        if not isinstance(error, SystemExit):
            standard("traceback").print_exception(error)
        elif not isinstance(code, (int, type(None))):
            print(code, file=sys.stderr)
            code = 1
    finally:
        os._exit((code or 0) & 0xFF)


async def awaited(value):
    return await value


def is_async(handler):
    call = handler if hasattr(handler, "__code__") else getattr(type(handler), "__call__", None)
    return getattr(handler, "sless_async", False) or bool(getattr(getattr(call, "__code__", None), "co_flags", 0) & 0x80)


def with_two_arguments(handler, entrypoint, file):
    """handle(event, context) as it is; handle(event) wrapped. The common case needs no `inspect`, which is slow to import."""
    code = getattr(handler, "__code__", None)
    line = code.co_firstlineno if code else 0
    if code is not None and not hasattr(handler, "__wrapped__") and not hasattr(handler, "__self__"):
        most = code.co_argcount
        least = most - len(handler.__defaults__ or ())
        if code.co_flags & 0x04:  # *args
            most = max(most, 2)
        required_keywords = code.co_kwonlyargcount - len(handler.__kwdefaults__ or ())
    else:
        inspect = standard("inspect")
        try:
            parameters = inspect.signature(handler).parameters.values()
        except (TypeError, ValueError):
            return handler  # cannot tell: the call will
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        most = len(positional)
        least = len([p for p in positional if p.default is p.empty])
        if any(p.kind == p.VAR_POSITIONAL for p in parameters):
            most = max(most, 2)
        required_keywords = len([p for p in parameters if p.kind == p.KEYWORD_ONLY and p.default is p.empty])
    if least > 2 or most < 1 or required_keywords > 0:
        raise EntrypointError(
            f"entrypoint {entrypoint!r}: want a function of (event, context) or (event), but this one "
            + (f"needs {required_keywords} keyword arguments" if required_keywords else f"takes {most if least <= 2 else least} arguments"),
            file,
            line,
        )
    if most >= 2:
        return handler

    def only_event(event, _):
        return handler(event)

    only_event.sless_async = is_async(handler)
    return only_event


def follow_threads(worker):
    """Threads started inside a call write to the log of that call."""
    start = threading.Thread.start

    def start_with_call(self):
        pool = sys.modules.get("concurrent.futures.thread")
        if pool is not None and getattr(self, "_target", None) is pool._worker:
            follow_pools(worker)
            self._sless_call = None  # it works for any call
        else:
            self._sless_call = worker.calling()
        return start(self)

    threading.Thread.start = start_with_call


def follow_pools(worker):
    """What a pool does belongs to the call that asked for it, whichever call the thread was started in."""
    pool = sys.modules.get("concurrent.futures.thread")
    if pool is None or hasattr(pool, "_sless_submit"):
        return
    pool._sless_submit = submit = pool.ThreadPoolExecutor.submit

    def run(call, fn, args, kwargs):
        token = CURRENT.set(call)
        try:
            return fn(*args, **kwargs)
        finally:
            CURRENT.reset(token)

    def submit_with_call(self, fn, /, *args, **kwargs):
        return submit(self, run, worker.calling(), fn, args, kwargs)

    pool.ThreadPoolExecutor.submit = submit_with_call


if __name__ == "__main__":
    Worker(os.path.realpath(sys.argv[1]) if sys.argv[1] else "", sys.argv[2], sys.argv[3], int(sys.argv[4])).start()
