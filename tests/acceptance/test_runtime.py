"""The worker contract (docs/runner.md) as callers and authors of functions meet it, in both languages. No terraform."""
import json
import threading
import time
import unittest

from tests.acceptance.harness.control_plane import ControlPlane
from tests.acceptance.test_server import ServerCase

PYTHON = r'''
import asyncio, json, os, signal, sys, time

print("loaded")
state = {"calls": 0}

def handle(event, context):
    state["calls"] += 1
    what = event.get("path", "/")[1:] if "httpMethod" in event else event.get("do")
    return globals()["do_" + what.replace("-", "_")](event, context)

def do_event(event, context):
    return event

def do_context(event, context):
    return {"requestId": context.request_id, "function": context.function, "revision": context.revision, "memory": context.memory_mb,
            "source": context.source, "left": context.remaining_ms(), "deadline": context.deadline_ms}

def do_pid(event, context):
    return {"pid": os.getpid(), "calls": state["calls"]}

def do_answer(event, context):
    return {"statusCode": 418, "headers": {"X-One": "1", "x-two": ["a", "b"], "Content-Type": "text/plain"}, "cookies": ["a=1", "b=2"], "body": "short"}

def do_binary(event, context):
    return {"statusCode": 200, "headers": {"content-type": "application/octet-stream"}, "isBase64Encoded": True, "body": event["body"]}

def do_size(event, context):
    return len(event["body"] or "")

def do_large(event, context):
    return {"statusCode": 200, "body": "x" * 5_000_000}

def do_null(event, context):
    return None

def do_digits(event, context):
    return {"big": 12345678901234567890123, "small": 0.1}

def do_text(event, context):
    return "é\U0001f600"

def do_log(event, context):
    print("to stdout")
    print("to stderr", file=sys.stderr)
    context.logger.info("by logger")
    sys.stdout.write("no newline")

def do_long_line(event, context):
    print("y" * 100_000)
    print("after")

def do_flood(event, context):
    for i in range(20_000):
        print("line", i)
    return "done"

def do_raise(event, context):
    raise ValueError("secret detail")

def do_no_json(event, context):
    return {"a": {1, 2}}

def do_nan(event, context):
    return [float("nan")]

def do_bad_status(event, context):
    return {"statusCode": "200"}

def do_exit(event, context):
    sys.exit(3)

def do_die(event, context):
    os._exit(9)

def do_segfault(event, context):
    os.kill(os.getpid(), signal.SIGSEGV)

def do_sleep(event, context):
    time.sleep(60)

def do_stubborn(event, context):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

def do_nap(event, context):
    time.sleep(0.5)
    return os.getpid()

def do_memory(event, context):
    return len(bytearray(900_000_000))

def do_environment(event, context):
    return dict(os.environ)

def do_files(event, context):
    def seen(path):
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            return type(error).__name__
    def write(path):
        try:
            open(path, "w").close()
            return "written"
        except OSError as error:
            return type(error).__name__
    look = event.get("look", [])
    return {"pids": [p for p in os.listdir("/proc") if p.isdigit()], "root": seen("/"), "looked": {p: seen(p) for p in look},
            "code": write(os.path.dirname(os.path.abspath(__file__)) + "/x"), "tmp": write("/tmp/x"), "usr": write("/usr/x")}
'''

NODE = r'''
const fs = require('fs');
console.log('loaded');
let calls = 0;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const actions = {
  event: (event) => event,
  context: (event, context) => ({ requestId: context.requestId, function: context.function, revision: context.revision,
    memory: context.memoryMb, source: context.source, left: context.remainingMs(), deadline: context.deadlineMs }),
  pid: () => ({ pid: process.pid, calls }),
  answer: () => ({ statusCode: 418, headers: { 'X-One': '1', 'x-two': ['a', 'b'], 'Content-Type': 'text/plain' }, cookies: ['a=1', 'b=2'], body: 'short' }),
  binary: (event) => ({ statusCode: 200, headers: { 'content-type': 'application/octet-stream' }, isBase64Encoded: true, body: event.body }),
  size: (event) => (event.body ?? '').length,
  large: () => ({ statusCode: 200, body: 'x'.repeat(5000000) }),
  null: () => null,
  digits: () => ({ big: 9007199254740991, small: 0.1 }),
  text: () => 'é\u{1f600}',
  log: (event, context) => {
    console.log('to stdout');
    console.error('to stderr');
    context.logger.info('by logger');
    process.stdout.write('no newline');
  },
  'long-line': () => { console.log('y'.repeat(100000)); console.log('after'); },
  flood: () => { for (let i = 0; i < 20000; i++) console.log('line', i); return 'done'; },
  raise: () => { throw new TypeError('secret detail'); },
  'no-json': () => ({ a: new Set([1]) }),
  nan: () => [NaN],
  'bad-status': () => ({ statusCode: '200' }),
  exit: () => process.exit(3),
  die: () => process.kill(process.pid, 'SIGKILL'),
  segfault: () => process.kill(process.pid, 'SIGSEGV'),
  sleep: () => sleep(60000),
  stubborn: () => { for (;;); },
  nap: async () => { await sleep(500); return process.pid; },
  memory: () => { const all = []; for (;;) all.push(new Array(1e6).fill(Math.random())); },
  environment: () => process.env,
  files: (event) => {
    const seen = (path) => { try { return fs.readdirSync(path).sort(); } catch (error) { return error.code; } };
    const write = (path) => { try { fs.writeFileSync(path, ''); return 'written'; } catch (error) { return error.code; } };
    return { pids: fs.readdirSync('/proc').filter((p) => /^\d+$/.test(p)), root: seen('/'),
      looked: Object.fromEntries((event.look ?? []).map((p) => [p, seen(p)])),
      code: write(__dirname + '/x'), tmp: write('/tmp/x'), usr: write('/usr/x') };
  },
};
exports.handle = async (event, context) => {
  calls++;
  const what = event.httpMethod ? event.path.slice(1) : event.do;
  return actions[what](event, context);
};
'''


class Contract:
    """The tests; the classes below give them a language."""

    runtime = file = code = None

    @classmethod
    def setUpClass(cls):
        cls.plane = ControlPlane()
        cls.plane.start()
        cls.made = False

    @classmethod
    def tearDownClass(cls):
        cls.plane.stop()

    def setUp(self):
        if not type(self).made:
            self.deploy("f", environment={"GREETING": "top-secret-value"}, timeoutSec=20)
            self.http_trigger("f")
            type(self).made = True

    def deploy(self, name, **spec):
        return self.function(name, {self.file: self.code}, runtime=self.runtime, **spec)

    def call(self, what, **kwargs):
        return self.plane.call(f"default/f/{what}", **kwargs)

    def invoke(self, what, function="f", **event):
        return self.plane.api(f"/v1/namespaces/default/functions/{function}/invoke", "POST", {"do": what, **event})

    def logs(self, request_id, function="f"):
        answer = self.plane.api(f"/v1/namespaces/default/functions/{function}/logs?limit=1000")
        self.assertEqual(200, answer.status, answer)
        return [item for item in answer.json()["items"] if item.get("requestId") == request_id]

    # --- events and answers -------------------------------------------------------------------------------------------------

    def test_the_http_event(self):
        answer = self.call("event?a=1&a=2&b=%C3%A9", method="POST", body="text é".encode(), headers={"X-Some": "Value", "X-Sless-Source": "forged"})
        self.assertEqual(200, answer.status, answer)
        event = answer.json()
        self.assertEqual(("POST", "/event", "text é", False), tuple(event[k] for k in ("httpMethod", "path", "body", "isBase64Encoded")))
        self.assertEqual({"a": "2", "b": "é"}, event["queryStringParameters"])
        self.assertEqual(["1", "2"], event["multiValueQueryStringParameters"]["a"])
        self.assertEqual("Value", event["headers"]["x-some"])
        self.assertNotIn("x-sless-source", event["headers"])
        context = event["requestContext"]
        self.assertEqual(answer.headers["x-request-id"], context["requestId"])
        self.assertEqual(("/fn/default/f/event", "127.0.0.1"), (context["path"], context["identity"]["sourceIp"]))
        self.assertEqual("1", answer.headers["x-sless-revision"])

    def test_a_described_answer(self):
        answer = self.call("answer")
        self.assertEqual((418, "short", "1", "text/plain"), (answer.status, answer.text, answer.headers["x-one"], answer.headers["content-type"]))
        answer = self.call("answer", method="HEAD")
        self.assertEqual((418, ""), (answer.status, answer.text))

    def test_plain_values(self):
        for what, text in (("null", "null"), ("text", '"é\U0001f600"'), ("digits", None)):
            answer = self.call(what)
            self.assertEqual((200, "application/json"), (answer.status, answer.headers["content-type"]), answer)
            if text is None:
                self.assertIn(str(answer.json()["big"]), answer.text)
                self.assertEqual(0.1, answer.json()["small"])
            else:
                self.assertEqual(json.loads(text), answer.json())

    def test_binary_bodies_both_ways(self):
        data = bytes(range(256)) * 40
        answer = self.call("binary", method="POST", body=data)
        self.assertEqual((200, data), (answer.status, answer.body))

    def test_bodies_up_to_the_limit_and_no_further(self):
        limit = 6 * 1024 * 1024
        answer = self.call("size", method="POST", body=b"a" * limit)
        self.assertEqual((200, str(limit)), (answer.status, answer.text))
        # Six bytes each as JSON: the event is base64 then, or no process could take it.
        before = self.call("pid").json()["pid"]
        answer = self.call("size", method="POST", body=b"\0" * limit)
        self.assertEqual((200, str(limit // 3 * 4)), (answer.status, answer.text))
        self.assertEqual(before, self.call("pid").json()["pid"])
        answer = self.call("size", method="POST", body=b"a" * (limit + 1))
        self.assertEqual(413, answer.status, answer)
        self.assertIn(str(limit), answer.text)
        self.assertEqual(5_000_000, len(self.call("large").text))

    def test_an_event_of_a_job_or_an_invoke_comes_as_it_is(self):
        answer = self.invoke("event", number=1, text="é")
        self.assertEqual({"do": "event", "number": 1, "text": "é"}, answer.json())
        done = self.job("as-is", "f", 1, eventJson='{"do":"event","big":1.5}')
        self.assertEqual({"do": "event", "big": 1.5}, json.loads(done["status"]["resultJson"]))

    def test_context(self):
        answer = self.call("context")
        context = answer.json()
        self.assertEqual(answer.headers["x-request-id"], context["requestId"])
        self.assertEqual(("default/f", 1, 256, "http"), tuple(context[k] for k in ("function", "revision", "memory", "source")))
        self.assertTrue(0 < context["left"] <= 20_000, context)
        self.assertLess(abs(context["deadline"] / 1000 - 20 - time.time()), 5)
        self.assertEqual("invoke", self.invoke("context").json()["source"])
        self.assertEqual("job", json.loads(self.job("context", "f", 1, eventJson='{"do":"context"}')["status"]["resultJson"])["source"])

    # --- logs ---------------------------------------------------------------------------------------------------------------

    def test_log_lines_have_stream_and_request_id(self):
        answer = self.call("log")
        self.assertEqual(200, answer.status)
        lines = self.until(lambda: (lambda l: l if len(l) >= 4 else None)(self.logs(answer.headers["x-request-id"])), 5, "four lines")
        self.assertEqual({("stdout", "to stdout"), ("stderr", "to stderr"), ("stderr", "INFO by logger"), ("stdout", "no newline")},
                         {(item["stream"], item["line"]) for item in lines})

    def test_long_lines_are_cut_and_floods_drained(self):
        answer = self.call("long-line")
        lines = self.until(lambda: (lambda l: l if l and l[-1]["line"] == "after" else None)(self.logs(answer.headers["x-request-id"])), 5, "both lines")
        self.assertLessEqual(max(len(item["line"]) for item in lines), 16 * 1024)
        answer = self.call("flood")
        self.assertEqual((200, "done"), (answer.status, answer.json()))

    # --- failures -----------------------------------------------------------------------------------------------------------

    def test_an_exception_is_502_for_strangers_and_full_for_owners(self):
        answer = self.call("raise")
        self.assertEqual(502, answer.status)
        self.assertNotIn("secret detail", answer.text)
        self.assertIn(answer.headers["x-request-id"], answer.text)
        lines = self.until(lambda: self.logs(answer.headers["x-request-id"]), 5, "the reason is in the log")
        self.assertTrue(any("secret detail" in item["line"] for item in lines), lines)
        answer = self.invoke("raise")
        self.assertEqual(422, answer.status, answer)
        error = answer.json()["error"] if "error" in answer.json() else answer.json()
        self.assertIn("secret detail", error["message"])
        self.assertIn(self.file, answer.text)

    def test_results_that_are_no_json_say_what_and_where(self):
        for what, word in (("no-json", "et"), ("nan", "NaN")):
            answer = self.invoke(what)
            self.assertEqual(422, answer.status, answer)
            self.assertIn("result", answer.text)
            self.assertIn(word.lower(), answer.text.lower())
            self.assertIn(self.file, answer.text)
            self.assertNotIn("BadResult", answer.text)
            self.assertEqual(502, self.call(what).status)
        answer = self.call("bad-status")
        self.assertEqual(502, answer.status)
        self.assertIn("statusCode", answer.text)

    def test_exit_fails_the_call_and_the_worker_goes_on(self):
        before = self.invoke("pid").json()["pid"]
        answer = self.invoke("exit")
        self.assertEqual(422, answer.status, answer)
        self.assertIn("exit", answer.text)
        self.assertEqual(before, self.invoke("pid").json()["pid"])

    def test_a_crash_is_told_and_healed(self):
        for what in ("die", "segfault"):
            self.deploy("crash-" + what)
            answer = self.invoke(what, "crash-" + what)
            self.assertEqual(502, answer.status, answer)
            self.assertIn("process", answer.text)
            self.until(lambda: self.invoke("pid", "crash-" + what).status == 200, 15, "it is started again")

    def test_a_timeout_is_504_and_the_call_is_ended(self):
        for what in ("sleep", "stubborn"):
            name = "slow-" + what
            self.deploy(name, timeoutSec=2, replicas=1)
            self.http_trigger(name, name)
            self.assertEqual(200, self.invoke("null", name).status)
            before = self.plane.processes()
            began = time.monotonic()
            answer = self.plane.call(f"default/{name}/{what}")
            self.assertEqual(504, answer.status, answer)
            self.assertIn("timeout_sec = 2", answer.text)
            self.assertLess(time.monotonic() - began, 4)
            began = time.monotonic()
            self.assertEqual(200, self.invoke("null", name).status)
            self.assertLess(time.monotonic() - began, 5, "the next call is served at once")
            self.until(lambda: len(self.plane.processes()) <= len(before), 5, "no process is left of the call")

    def test_too_much_memory_is_told(self):
        self.deploy("greedy", memoryMb=128, timeoutSec=30)
        answer = self.invoke("memory", "greedy")
        self.assertIn(answer.status, (422, 502), answer)
        self.assertRegex(answer.text, "[Mm]emory")
        self.until(lambda: self.invoke("pid", "greedy").status == 200, 15, "it goes on")

    # --- concurrency --------------------------------------------------------------------------------------------------------

    def at_once(self, function, count):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.invoke("nap", function))) for _ in range(count)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual([200] * count, [a.status for a in answers])
        return time.monotonic() - began, {a.json() for a in answers}

    def test_concurrency_is_calls_at_once_in_one_replica(self):
        self.deploy("wide", concurrency=8, replicas=1)
        self.deploy("narrow", concurrency=1, replicas=1)
        took, pids = self.at_once("wide", 8)
        self.assertEqual(1, len(pids))
        self.assertLess(took, 2.5)
        took, pids = self.at_once("narrow", 4)
        self.assertGreaterEqual(took, 2.0, "one after another")

    # --- isolation ----------------------------------------------------------------------------------------------------------

    def test_the_sandbox(self):
        other = self.deploy("other", environment={"OTHER": "another-secret"}, minReplicas=1)
        self.assertEqual("Ready", other["status"]["phase"])
        seen = self.invoke("files", look=[self.plane.data, "/root", "/home", "/proc/1/fd", "/sys/fs/cgroup"]).json()
        self.assertLessEqual(len(seen["pids"]), 5, "only its own processes")
        self.assertIn(seen["looked"][self.plane.data], ("FileNotFoundError", "PermissionError", "ENOENT", "EACCES"))
        self.assertIn(seen["looked"]["/root"], ("FileNotFoundError", "PermissionError", "ENOENT", "EACCES", [".pyenv"], [".cache"]))
        self.assertEqual("written", seen["tmp"])
        self.assertNotEqual("written", seen["code"])
        self.assertNotEqual("written", seen["usr"])

    def test_environment_values_stay_where_they_belong(self):
        environment = self.invoke("environment").json()
        self.assertEqual("top-secret-value", environment["GREETING"])
        self.assertEqual("f", environment["SLESS_FUNCTION"])
        self.assertNotIn("another-secret", json.dumps(environment))
        self.assertFalse([name for name in environment if name.startswith("SLESS_") and "TOKEN" in name])
        for pid in self.plane.processes() + [self.plane.process.pid]:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    self.assertNotIn(b"top-secret-value", file.read())
            except OSError:
                continue
        self.assertNotIn("top-secret-value", self.plane.log_tail(100_000))
        logs = self.plane.api("/v1/namespaces/default/functions/f/logs?limit=1000").text
        self.assertNotIn("top-secret-value", logs)


class Python(Contract, ServerCase):
    runtime, file, code = "python3.11", "handler.py", PYTHON

    def test_async_handlers_run_side_by_side(self):
        self.function("asynchronous", "import asyncio, os\nasync def handle(event):\n    await asyncio.sleep(0.5)\n    return os.getpid()\n",
                      concurrency=8, replicas=1)
        took, pids = self.at_once("asynchronous", 8)
        self.assertEqual(1, len(pids))
        self.assertLess(took, 2.5)


class Node(Contract, ServerCase):
    runtime, file, code = "nodejs20", "handler.js", NODE

    def test_modules_of_both_kinds(self):
        self.function("esm", {"handler.mjs": "import { x } from './lib/x.mjs';\nexport const handle = async () => x;\n", "lib/x.mjs": "export const x = 'esm';\n"},
                      runtime="nodejs20")
        self.assertEqual("esm", self.invoke("x", "esm").json())


class BehindAProxy(ServerCase):
    config = "trusted_proxies: [127.0.0.1, 10.0.0.0/8]\n"

    def test_functions_see_the_client(self):
        self.function("f", "def handle(event, context):\n    return event\n")
        self.http_trigger("f")
        event = self.plane.call("default/f", headers={"X-Forwarded-For": "1.1.1.1, 203.0.113.9:4711, 10.0.0.2", "X-Forwarded-Proto": "https",
                                                      "X-Forwarded-Host": "shop.example", "Connection": "Host, close"}).json()
        self.assertEqual("203.0.113.9", event["requestContext"]["identity"]["sourceIp"])
        self.assertEqual("shop.example", event["requestContext"]["domainName"])
        headers = event["headers"]
        self.assertEqual(("203.0.113.9", "https", self.plane.url.removeprefix("http://")),
                         (headers["x-forwarded-for"], headers["x-forwarded-proto"], headers["host"]))


if __name__ == "__main__":
    unittest.main()
