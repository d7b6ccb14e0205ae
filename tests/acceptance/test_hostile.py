"""Hostile clients and hostile functions against a real slessd. No terraform.

Whatever is sent and whatever a function does: an answer in bounded time, the next caller is served as before, memory does not grow.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import resource
import socket
import time
import unittest

from . import test_server
from .harness.control_plane import ControlPlane, request

MIB = 1 << 20
SECRET = "do-not-tell-4711"


class HostileCase(test_server.ServerCase):
    """One slessd for the class; each test ends with a look at its health."""

    config = None

    @classmethod
    def setUpClass(cls):
        cls.plane = ControlPlane(config=cls.config, env={"SOME_SECRET": SECRET})
        try:
            cls.plane.start()
            cls.warm = cls.memory()
        except BaseException:
            cls.plane.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.plane.stop()

    def setUp(self):
        self.before = self.memory()

    def tearDown(self):
        self.assert_healthy()

    @classmethod
    def memory(cls):
        """-> MiB that slessd itself holds; 0 under AddressSanitizer, which keeps what was freed."""
        with open(f"/proc/{cls.plane.process.pid}/maps", encoding="utf-8", errors="replace") as file:
            if "libasan" in file.read():
                return 0
        with open(f"/proc/{cls.plane.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) // 1024

    def assert_healthy(self):
        self.assertIsNone(self.plane.process.poll(), self.plane.log_tail())

        def quick():
            start = time.monotonic()
            fine = request(self.plane.url + "/healthz", timeout=5).status == 200
            return fine and time.monotonic() - start < 0.1

        self.until(quick, 10, "a health check in 100 ms")
        self.until(lambda: self.memory() <= self.before + 50, 10, f"memory back at {self.before} MiB + 50, now {self.memory()}")


class Raw:
    """A connection for bytes that http.client would not send."""

    def __init__(self, plane, timeout=20):
        self.socket = socket.create_connection(("127.0.0.1", int(plane.url.rsplit(":", 1)[1])), timeout)

    def send(self, data):
        """Sends what the server takes; it may have closed already."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)
        return self

    def read(self, until=None):
        """-> what comes until the server closes, or until `until` has come."""
        out = b""
        with contextlib.suppress(ConnectionError):
            while until is None or until not in out:
                piece = self.socket.recv(65536)
                if not piece:
                    break
                out += piece
        return out

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def statuses(answer):
    return [int(s) for s in re.findall(rb"HTTP/1\.[01] (\d{3}) ", answer)]


class Http(HostileCase):
    def exchange(self, data):
        """Sends it and `Connection: close` requests' worth of patience; -> statuses of all answers until the server closes."""
        with Raw(self.plane) as raw:
            raw.send(data)
            with contextlib.suppress(OSError):
                raw.socket.shutdown(socket.SHUT_WR)
            return statuses(raw.read())

    def test_ambiguous_framing_is_refused_and_nothing_is_smuggled(self):
        tail = b"\r\n0\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
        for name, lines in {
            "length and coding": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "coding and length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
            "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n",
            "one length twice": b"Content-Length: 4\r\nContent-Length: 4\r\n",
            "list of lengths": b"Content-Length: 4, 4\r\n",
            "signed length": b"Content-Length: +4\r\n",
            "negative length": b"Content-Length: -4\r\n",
            "hexadecimal length": b"Content-Length: 0x4\r\n",
            "empty length": b"Content-Length:\r\n",
            "length with a space in it": b"Content-Length: 4 4\r\n",
            "length beyond 64 bits": b"Content-Length: 18446744073709551620\r\n",
            "coding twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "coding in a list": b"Transfer-Encoding: identity, chunked\r\n",
            "chunked is not last": b"Transfer-Encoding: chunked, identity\r\n",
            "unknown coding": b"Transfer-Encoding: xchunked\r\n",
            "vertical tab": b"Transfer-Encoding: \x0bchunked\r\n",
            "quoted coding": b'Transfer-Encoding: "chunked"\r\n',
            "space before the colon": b"Transfer-Encoding : chunked\r\n",
            "space before the name": b" Transfer-Encoding: chunked\r\n",
            "NUL in the name": b"Transfer-Encoding\x00: chunked\r\n",
            "NUL in a value": b"X: a\x00b\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            "carriage return in a value": b"X: a\rTransfer-Encoding: chunked\r\n",
            "line without a colon": b"Transfer-Encoding\r\n",
            "empty name": b": x\r\n",
        }.items():
            with self.subTest(name):
                got = self.exchange(b"POST /healthz HTTP/1.1\r\nHost: x\r\n" + lines + tail)
                self.assertEqual(1, len(got), got)
                self.assertIn(got[0], (400, 501), name)

    def test_chunks(self):
        url = "/v1/namespaces/default/functions/none/invoke"
        head = f"POST {url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.plane.token}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        for name, body in {
            "size beyond 64 bits": b"fffffffffffffffff\r\nx",
            "negative size": b"-1\r\nx",
            "no size": b"\r\n\r\n",
            "size with 0x": b"0x2\r\n{}\r\n0\r\n\r\n",
            "no line end after a chunk": b"2\r\n{}0\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n",
            "bare line feeds": b"2\n{}\n0\n\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n",
            "giant extension": b"2;" + b"x" * MIB + b"\r\n{}\r\n0\r\n\r\n",
            "endless trailer": b"0\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
            "words": b"zz\r\n",
        }.items():
            with self.subTest(name):
                got = self.exchange(head + body)
                self.assertLessEqual(len(got), 1, name)
                self.assertTrue(not got or 400 <= got[0] < 500, (name, got))

    def test_request_lines_and_heads(self):
        for name, data, want in (
            ("no version", b"GET /healthz\r\n\r\n", {400}),
            ("version 2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505}),
            ("version 1.9", b"GET /healthz HTTP/1.9\r\nHost: x\r\n\r\n", {400, 505}),
            ("no host", b"GET /healthz HTTP/1.1\r\n\r\n", {400}),
            ("two hosts", b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", {400}),
            ("another host", b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", {200}),
            ("connect", b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", {400, 404, 405, 501}),
            ("asterisk", b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {400, 404, 405}),
            ("trace", b"TRACE /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {405}),
            ("unknown method", b"FROBNICATE /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {405}),
            ("long method", b"M" * 100_000 + b" / HTTP/1.1\r\nHost: x\r\n\r\n", {400, 431, 501}),
            ("method with a control", b"G\x01T / HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
            ("long target", b"GET /" + b"a" * MIB + b" HTTP/1.1\r\nHost: x\r\n\r\n", {414, 431}),
            ("long header", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * MIB + b"\r\n\r\n", {431}),
            ("many headers", b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 10_000 + b"\r\n", {431}),
            ("binary", bytes(range(256)) * 100, {400, 431}),
            ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200, {400}),
            ("version 1.0", b"GET /healthz HTTP/1.0\r\n\r\n", {200}),
            ("websocket", b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"
                          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", {200}),
            ("unknown expectation", b"GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: the-worst\r\nConnection: close\r\n\r\n", {200, 417}),
        ):
            with self.subTest(name):
                got = self.exchange(data)
                # A server that closes while megabytes are on their way may lose its answer to a reset.
                self.assertTrue((got and got[0] in want and len(got) == 1) or (not got and len(data) > 65536), (name, got))

    def test_expect_continue(self):
        self.function("there", "def handle(event):\n    return 1\n")
        path = "POST /v1/namespaces/default/functions/there/invoke HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n"
        with Raw(self.plane) as raw:  # refused before a body is asked for
            raw.send(f"{path}Content-Length: 2\r\n\r\n".encode())
            self.assertEqual([401], statuses(raw.read()))
        with Raw(self.plane) as raw:
            raw.send(f"{path}Authorization: Bearer {self.plane.token}\r\nContent-Length: 2\r\n\r\n".encode())
            self.assertIn(b"100", raw.read(b"\r\n\r\n"))
            self.assertEqual([200], statuses(raw.send(b"{}").read()))
        with Raw(self.plane) as raw:
            raw.send(f"{path}Authorization: Bearer {self.plane.token}\r\nContent-Length: 99999999999\r\n\r\n".encode())
            self.assertEqual([413], statuses(raw.read()))

    def test_pipelining_keeps_the_order(self):
        with Raw(self.plane) as raw:
            for number in range(50):
                raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: n%d\r\n%s\r\n" % (number, b"Connection: close\r\n" if number == 49 else b""))
            answer = raw.read()
        self.assertEqual([200] * 50, statuses(answer), answer[:500])
        self.assertEqual([str(n) for n in range(50)], [m.decode() for m in re.findall(rb"(?i)x-request-id: n(\d+)", answer)])

    def test_bodies_above_every_limit(self):
        self.function("there", "def handle(event):\n    return 1\n")
        auth = {"Authorization": f"Bearer {self.plane.token}"}
        code = "/v1/namespaces/default/code/sha256:" + "0" * 64
        for path, method, limit in (("/v1/namespaces/default/functions/x", "PUT", MIB), (code, "PUT", 64 * MIB),
                                    ("/v1/namespaces/default/functions/there/invoke", "POST", 6 * MIB)):
            with self.subTest(path=path, form="length"), Raw(self.plane) as raw:
                raw.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {auth['Authorization']}\r\nContent-Length: {limit + 1}\r\n\r\n".encode())
                self.assertEqual([413], statuses(raw.read(b"\r\n\r\n")))
            with self.subTest(path=path, form="chunks"), Raw(self.plane, 60) as raw:
                raw.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {auth['Authorization']}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
                chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
                with contextlib.suppress(ConnectionError):
                    for _ in range(limit // 65536 + 2):
                        raw.socket.sendall(chunk)
                got = statuses(raw.read(b"\r\n\r\n"))
                self.assertTrue(got in ([413], []), got)

    def test_slow_senders_are_cut_off(self):
        self.function("there", "def handle(event):\n    return 1\n")
        head = f"POST /v1/namespaces/default/functions/there/invoke HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.plane.token}\r\nContent-Length: 100\r\n\r\n"

        def trickle(data, pause, limit):
            with Raw(self.plane, 1) as raw:
                start = time.monotonic()
                for byte in data:
                    raw.send(bytes([byte]))
                    with contextlib.suppress(TimeoutError):
                        if raw.read(b"\r\n\r\n") is not None:
                            return time.monotonic() - start
                    time.sleep(max(0, pause - 1))
                    if time.monotonic() - start > limit:
                        return limit
            return limit

        def silent_body():
            with Raw(self.plane, 60) as raw:
                start = time.monotonic()
                raw.send(head.encode() + b"{").read()
                return time.monotonic() - start

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            slow = [pool.submit(trickle, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100, 1, 30) for _ in range(10)]
            body = pool.submit(silent_body)
            self.assert_healthy()
            for one in slow:
                self.assertLess(one.result(60), 25)
            self.assertLess(body.result(90), 45)

    def test_an_upload_wakes_its_function_and_holds_no_replica_once_it_stalls(self):
        self.function("up", "def handle(event):\n    h = event['headers']\n"
                      "    return [len(event['body']), h.get('content-length'), h.get('transfer-encoding')]\n", maxReplicas=1, idleTimeoutSec=1)
        self.http_trigger("up", "up")

        def running():
            return self.plane.object("functions", "default", "up")["status"].get("readyReplicas", 0)

        half = b"a" * 100_000
        for framing, pieces in {"Content-Length: 200000": (half, half),
                                "Transfer-Encoding: chunked": (b"186a0\r\n" + half + b"\r\n", b"186a0\r\n" + half + b"\r\n0\r\n\r\n")}.items():
            with self.subTest(framing), Raw(self.plane) as raw:
                self.until(lambda: running() == 0, 20, "it is idle")
                raw.send(f"POST /fn/default/up HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{framing}\r\n\r\n".encode() + pieces[0])
                self.until(lambda: running() == 1, 10, "half of a body has woken it")
                other = self.plane.call("default/up", method="POST", body=b"abc")
                self.assertEqual((200, [3, "3", None]), (other.status, other.json()))
                answer = raw.send(pieces[1]).read()
                self.assertEqual([200], statuses(answer), answer)
                self.assertEqual([200_000, "200000", None], json.loads(answer.partition(b"\r\n\r\n")[2]))

    def test_a_thousand_idle_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 1200:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        with contextlib.ExitStack() as stack:
            for _ in range(1000):
                stack.enter_context(Raw(self.plane))
            self.assert_healthy()

    def test_bodies_that_are_no_object(self):
        path = "/v1/namespaces/default/functions/x"
        spec = '{"spec":{"runtime":"python3.11","source":{"type":"code","code":"x"},%s}}'
        for name, body in {
            "empty": b"", "spaces": b"  ", "null": b"null", "list": b"[]", "string": b'"x"', "number": b"1", "two values": b"{}{}", "cut": b'{"spec":{',
            "no UTF-8": b'{"spec":{"runtime":"\xff\xfe"}}', "overlong UTF-8": b'{"spec":{"runtime":"\xc0\xaf"}}', "half a surrogate": b'{"spec":{"runtime":"\\ud800"}}',
            "UTF-16": '{"spec":{}}'.encode("utf-16"), "depth": b'{"a":' * 100_000, "deep lists": b"[" * 500_000, "closed depth": b"[" * 100_000 + b"]" * 100_000,
            "NaN": b'{"spec":{"memoryMb":NaN}}', "comment": b"{/* x */}", "huge number": (spec % '"memoryMb":1e400').encode(),
            "huge exponent": (spec % '"memoryMb":1e99999999').encode(), "long number": (spec % f'"memoryMb":{"9" * 10_000}').encode(),
            "beyond 64 bits": (spec % '"memoryMb":18446744073709551616').encode(), "half": (spec % '"memoryMb":256.5').encode(),
            "negative": (spec % '"memoryMb":-1').encode(), "number as text": (spec % '"memoryMb":"256"').encode(), "list as number": (spec % '"memoryMb":[256]').encode(),
            "NUL in a name": (spec % '"environment":{"A\\u0000B":"x"}').encode(), "NUL in a value": (spec % '"environment":{"A":"\\u0000"}').encode(),
            "unknown field": (spec % '"memory":1').encode(), "many unknown fields": json.dumps({"spec": {f"f{n}": n for n in range(50_000)}}).encode(),
            "long unknown field": json.dumps({"spec": {"x" * 900_000: 1}}).encode(), "proto": b'{"__proto__":{"x":1}}',
        }.items():
            with self.subTest(name):
                answer = self.plane.api(path, "PUT", body, {"Content-Type": "application/json"})
                self.assertEqual(400, answer.status, answer)
                self.assertEqual("InvalidArgument", answer.json()["code"])
                self.assertLess(len(answer.body), 8192)
        self.assertIsNone(self.plane.object("functions", "default", "x"))

    def test_names_and_paths(self):
        for name in ("%00", "a%00", "..", "%2e%2e", "%2e%2e%2fsecret", "a%2fb", "a%5cb", "..%5c", ".", "A", "a_b", "-a", "a-", "a" * 64, "%c3%a9", "%ff", "a%20b",
                     "%", "%zz", "a;b", "'%20or%201=1", "a%0d%0aX:y", "%2525", "*"):
            for path in (f"/v1/namespaces/default/functions/{name}", f"/v1/namespaces/{name}/functions/a", f"/v1/namespaces/default/code/{name}",
                         f"/v1/namespaces/default/jobs/{name}/runs", f"/fn/{name}/a", f"/fn/default/{name}/"):
                for method in ("GET", "PUT", "DELETE"):
                    with self.subTest(path=path, method=method):
                        answer = self.plane.api(path, method, {"spec": {}} if method == "PUT" else None)
                        self.assertIn(answer.status, (400, 404, 405), answer)
                        self.assertNotIn("x", answer.headers)
        for path in ("/fn/../v1/namespaces", "/fn/a/b/../../../v1/openapi.json", "/fn//v1/openapi.json", "/%76%31/openapi.json", "//v1/openapi.json", "/v1/../metrics",
                     "/fn/a/b/%2e%2e/%2e%2e/%2e%2e/v1/openapi.json", "/v1%2fopenapi.json", "/v1\\openapi.json"):
            with self.subTest(path=path), Raw(self.plane) as raw:
                raw.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                self.assertIn(statuses(raw.read())[0], (400, 404))
        for query in ("wait=never", "wait=ready&timeout=-1", "wait=ready&timeout=61", "wait=ready&timeout=9e9", "wait=ready&generation=x",
                      "wait=ready&timeout=99999999999999999999", "wait=gone&timeout=%00", "wait[]=ready"):
            with self.subTest(query=query):
                answer = self.plane.api("/v1/namespaces/default/functions/none?" + query)
                self.assertIn(answer.status, (400, 404), answer)

    def test_tokens(self):
        good = self.plane.token
        for token in ("", "x", good[:-1], good + "0", good.upper(), good.swapcase(), " " * 100, "sless_test_" + "0" * 64, "sless__" + "0" * 64, "a" * 15_000,
                      "\x80\xff", "sless_../x_" + "0" * 64, good + "," + good):
            with self.subTest(token=token[:40]):
                answer = request(self.plane.url + "/v1/namespaces/default/functions", headers={"Authorization": b"Bearer " + token.encode("latin-1")})
                self.assertEqual(401, answer.status, answer)
                self.assertNotIn(good[12:], answer.text)
        for header in (good, "Basic " + good, "Bearer", "Bearer" + good, "Token " + good):
            with self.subTest(header=header[:12]):
                self.assertEqual(401, request(self.plane.url + "/v1/namespaces/default/functions", headers={"Authorization": header}).status)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            def try_one(number):
                connection = http.client.HTTPConnection(self.plane.url[7:], timeout=20)
                with contextlib.closing(connection):
                    got = set()
                    for n in range(250):
                        connection.request("GET", "/v1/namespaces/default/functions", headers={"Authorization": f"Bearer sless_t{number}x{n}_{n:064x}"})
                        answer = connection.getresponse()
                        answer.read()
                        got.add(answer.status)
                    return got
            got = set().union(*pool.map(try_one, range(16)))
        self.assertLessEqual(got, {401, 503})
        self.until(lambda: self.plane.api("/v1/namespaces/default/functions").status == 200, 5, "the good token counts")

    def test_code_of_another_namespace_is_not_told(self):
        tree, data = test_server.pack({"handler.py": "def handle(event):\n    return 'a secret of the others'\n"})
        self.assertIn(self.plane.api(f"/v1/namespaces/others/code/{tree}", "PUT", data).status, (200, 201))
        self.assertEqual(200, self.plane.api(f"/v1/namespaces/others/code/{tree}", "HEAD").status)
        self.assertEqual(404, self.plane.api(f"/v1/namespaces/default/code/{tree}", "HEAD").status)
        answer = self.plane.api("/v1/namespaces/default/functions/thief", "PUT",
                                {"spec": {"runtime": "python3.11", "source": {"type": "dir", "path": "x", "hash": tree}}})
        self.assertEqual((422, "SourceMissing"), (answer.status, answer.json().get("reason")), answer)
        # Bytes that are something else under the name of that hash are refused, not answered by what is there.
        other = test_server.pack({"handler.py": "x = 1\n"})[1]
        self.assertEqual(422, self.plane.api(f"/v1/namespaces/default/code/{tree}", "PUT", other).status)


# The worker moves its channel away from descriptor 3: a function that wants it must look for it.
SOCKETS = ("import os, stat, struct, time\n"
           "def is_socket(fd):\n  try: return stat.S_ISSOCK(os.fstat(fd).st_mode)\n  except OSError: return False\n"
           "sockets = [fd for fd in range(3, 1024) if is_socket(fd)]\n"
           "def write(data):\n  for fd in sockets:\n    try: os.write(fd, data)\n    except OSError: pass\n")

PYTHON = {
    # name: (handler's body, acceptable statuses of an invoke)
    "prints-a-gigabyte": ("for n in range(1024): print('x' * 1048576)", {200, 504}),
    "prints-no-newline": ("import sys\nfor n in range(100): sys.stdout.write('x' * 1048576)\nsys.stdout.flush()", {200, 504}),
    "prints-to-the-pipe": ("import os\nfor n in range(200): os.write(1, b'\\xff\\x00' * 500000)", {200, 504}),
    "forks": ("import os, time\nfor n in range(10000):\n  if os.fork() == 0: time.sleep(600)", {422, 502, 504}),
    "opens-files": ("keep = [open('/dev/null') for n in range(10000)]", {200, 422, 502}),
    "allocates": ("keep = bytearray(10 << 30)\nfor n in range(0, len(keep), 4096): keep[n] = 1", {422, 502}),
    "fills-tmp": ("with open('/tmp/x', 'wb') as file:\n  for n in range(4096): file.write(b'x' * 1048576)", {422, 502, 504}),
    "closes-the-channel": (SOCKETS + "for fd in sockets: os.close(fd)", {502, 504}),
    "writes-garbage": (SOCKETS + "write(bytes(range(256)) * 40)\ntime.sleep(30)", {502, 504}),
    "announces-gigabytes": (SOCKETS + "write(b'\\x00\\x00\\x00\\x02\\x01\\xf0\\x00\\x00{}')\ntime.sleep(30)", {502, 504}),
    "forges-answers": (SOCKETS + "for head in (b'[]', b'null', b'{', b'{}', b'{\"type\":5}', b'{\"type\":\"result\",\"id\":\"x\"}', b'{\"type\":\"result\",\"id\":-1}',\n"
                       "             b'{\"type\":\"result\",\"id\":1e300}', b'{\"type\":\"error\",\"id\":1,\"error\":[]}', b'{\"type\":\"log\",\"id\":99,\"line\":7}',\n"
                       "             b'{\"type\":\"ready\"}', b'{\"type\":\"init_error\"}', b'{\"type\":\"pong\",\"id\":{}}', b'{\"type\":\"log\",\"id\":0,\"stream\":\"\\xff\",\"line\":\"\\xff\"}'):\n"
                       "  write(struct.pack('>II', len(head), 3) + head + b'{]}')\ntime.sleep(30)", {422, 502, 504}),
    "kills-its-parent": ("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(30)", {502, 504}),
    "stops-its-parent": ("import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(30)", {502, 503, 504}),
    "stops-itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", {502, 504}),
    "kills-all": ("import os, time\nos.kill(-1, 9)\ntime.sleep(30)", {502, 504}),
    "traces": ("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.ptrace(16, os.getppid(), 0, 0)\nlibc.ptrace(0, 0, 0, 0)", {200, 422, 502, 504}),
    "recurses": ("import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1) + 1\nreturn f(0)", {422, 502, 504}),
    "breaks-the-interpreter": ("import ctypes\nctypes.string_at(0)", {502}),
    "exits": ("import os\nos._exit(0)", {502}),
    "returns-100-mb": ("return 'x' * 100_000_000", {422, 502}),
    "returns-nan": ("return {'a': [float('nan')]}", {422}),
    "returns-depth": ("value = []\nfor n in range(100000): value = [value]\nreturn value", {422, 502}),
    "returns-no-utf8": ("return '\\ud800'", {200, 422}),
    "returns-an-object": ("return object()", {422}),
    "never-returns": ("while True: pass", {504}),
    "sleeps-in-c": ("import time\ntime.sleep(600)", {504}),
    "catches-all": ("import time\nwhile True:\n  try: time.sleep(1)\n  except BaseException: pass", {504}),
    "starts-threads": ("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(600,)).start()", {422, 502, 504}),
    "leaves-a-daemon": ("import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(600)\n  os._exit(0)\nreturn 1", {200, 502, 504}),
}

NODE = {
    "node-never-returns": ("while (true) {}", {504}),
    "node-writes-garbage": ("require('fs').writeSync(3, Buffer.alloc(4096, 255)); return new Promise(() => {});", {502, 504}),
    "node-allocates": ("const keep = []; while (true) keep.push(Buffer.alloc(1 << 24, 1));", {422, 502, 504}),
    "node-kills-its-parent": ("process.kill(process.ppid, 'SIGKILL'); return new Promise(() => {});", {502, 504}),
    "node-throws-later": ("setTimeout(() => { throw new Error('later'); }, 1); return new Promise(() => {});", {422, 502, 504}),
    "node-throws-odd": ("throw { get message() { throw 1; } };", {422, 502}),
    "node-odd-result": ("return { toJSON() { throw new Error('no'); } };", {422}),
    "node-proxy": ("return new Proxy({}, { ownKeys() { while (true) {} } });", {504}),
}


class Functions(HostileCase):
    def setUp(self):
        super().setUp()
        if not hasattr(type(self), "ready"):
            self.function("good", "def handle(event):\n    return {'good': event}\n", minReplicas=1)
            type(self).ready = True
            self.before = self.memory()

    def invoke(self, name, event="{}", timeout=60):
        return self.plane.api(f"/v1/namespaces/default/functions/{name}/invoke", "POST", event, timeout=timeout)

    def assert_others_are_served(self):
        start = time.monotonic()
        answer = self.invoke("good", '{"n":1}', 10)
        self.assertEqual((200, {"good": {"n": 1}}), (answer.status, answer.json()), answer)
        self.assertLess(time.monotonic() - start, 5)
        self.assert_healthy()

    def remove(self, name):
        self.plane.api(f"/v1/namespaces/default/functions/{name}", "DELETE")
        self.until(lambda: self.plane.object("functions", "default", name) is None, 30, f"{name} is gone")

    def try_all(self, table, runtime, file, text):
        quiet = len(self.plane.processes())
        for name, (body, want) in table.items():
            with self.subTest(name):
                self.function(name, {file: text(body)}, runtime=runtime, timeoutSec=4, memoryMb=128, maxReplicas=1)
                start = time.monotonic()
                answer = self.invoke(name)
                self.assertIn(answer.status, want, answer)
                self.assertLess(time.monotonic() - start, 30)
                if answer.status != 200:
                    self.assertTrue(answer.json()["message"])
                self.assert_others_are_served()
                self.remove(name)
        # A replica that cannot be asked to end is killed after the grace time of 25 s.
        self.until(lambda: len(self.plane.processes()) <= quiet, 60, "no process of them is left")

    def test_python(self):
        self.try_all(PYTHON, "python3.11", "handler.py", lambda body: "def handle(event):\n" + "".join(f"    {l}\n" for l in body.split("\n")))

    def test_node(self):
        self.try_all(NODE, "nodejs20", "handler.js", lambda body: f"exports.handle = (event) => {{ {body} }};\n")

    def test_logs_stay_small(self):
        self.function("chatty", "def handle(event):\n    for n in range(300): print('x' * 1048576)\n", timeoutSec=20)
        self.invoke("chatty")
        size = sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(self.plane.data) for f in files)
        self.assertLess(size, 100 * MIB)
        self.remove("chatty")

    def test_starts_that_fail(self):
        for name, text, reason in (("exits-at-import", "import os\nos._exit(0)\ndef handle(e): pass\n", "StartFailed"),
                                   ("raises-at-import", "def handle(e): pass\nraise SystemExit(3)\n", "StartFailed"),
                                   ("kills-at-import", "import os\ndef handle(e): pass\nos.kill(os.getppid(), 9)\n", "StartFailed"),
                                   ("garbage-at-import", "import os\ndef handle(e): pass\nos.write(3, b'\\xff' * 100)\n", "StartFailed"),
                                   ("closes-at-import", "import os\ndef handle(e): pass\nos.closerange(0, 4096)\n", "StartFailed")):
            with self.subTest(name):
                thing = self.function(name, text, phase="Failed")
                self.assertEqual(reason, thing["status"]["failure"]["reason"], thing)
                self.assertTrue(thing["status"]["failure"]["message"])
                self.assert_others_are_served()
                self.remove(name)

    def test_answers_that_are_no_http(self):
        self.function("odd", "import json\ndef handle(event):\n    return eval(event['body'])\n", memoryMb=512)
        self.http_trigger("odd", "odd")
        for name, value, want in (
            ("100000 headers", "{'statusCode': 200, 'headers': {f'X-H{n}': 'v' for n in range(100000)}}", {502}),
            ("one long header", "{'statusCode': 200, 'headers': {'X-H': 'v' * 1000000}}", {502}),
            ("split", "{'statusCode': 200, 'headers': {'X-H': 'a\\r\\nSet-Cookie: b'}}", {502}),
            ("name with a colon", "{'statusCode': 200, 'headers': {'X:H': 'a'}}", {502}),
            ("framing", "{'statusCode': 200, 'headers': {'Content-Length': '5', 'Transfer-Encoding': 'chunked', 'Connection': 'close'}, 'body': 'x'}", {200}),
            ("status 100", "{'statusCode': 100}", {502}),
            ("status 999", "{'statusCode': 999}", {502}),
            ("status as text", "{'statusCode': '200'}", {502}),
            ("status that is huge", "{'statusCode': 10**30}", {502}),
            ("no base64", "{'statusCode': 200, 'isBase64Encoded': True, 'body': '*'}", {502}),
            ("headers as a list", "{'statusCode': 200, 'headers': [1]}", {502}),
            ("7 MB", "{'statusCode': 200, 'body': 'x' * 7000000}", {200}),
            ("20 MB", "'x' * 20000000", {502}),
        ):
            with self.subTest(name):
                answer = self.plane.call("default/odd", "POST", value)
                self.assertIn(answer.status, want, f"{answer.status} {answer.text[:300]}")
                self.assertNotIn("set-cookie", answer.headers)
                if answer.status == 502 and name != "20 MB":
                    self.assertEqual("HandlerError", answer.json()["reason"], answer)
                    self.assertIn("the handler's answer: ", answer.text)
                self.assert_others_are_served()
        self.remove("odd")

    def test_what_a_function_sees(self):
        # What can be read of other processes and of the host, and what can be written.
        self.function("spy", """
import glob, os, socket

def read(path):
    try:
        with open(path, 'rb') as file:
            return file.read(1 << 20).decode('latin-1')
    except OSError as error:
        return ''

def handle(event):
    out = {'environ': [read(p) for p in glob.glob('/proc/[0-9]*/environ')], 'cmdline': [read(p) for p in glob.glob('/proc/[0-9]*/cmdline')]}
    out['written'] = []
    for folder in ('/', '/var/task', '/usr', '/etc', '/sless', '/opt', '/proc', '/sys', '/dev', '/lib', '/bin', '/var', '/proc/sys/kernel'):
        try:
            with open(folder + '/evil', 'w') as file:
                file.write('x')
            out['written'].append(folder)
        except OSError:
            pass
    out['data'] = [p for p in event['paths'] if os.path.exists(p)]
    out['connected'] = []
    names = {line.split()[-1] for line in read('/proc/net/unix').splitlines()[1:] if len(line.split()) == 8}
    for name in sorted(names):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                s.settimeout(1)
                s.connect(chr(0) + name[1:] if name.startswith('@') else name)
                out['connected'].append(name)
        except OSError:
            pass
    out['caps'] = [l for l in read('/proc/self/status').splitlines() if l.startswith(('CapEff', 'NoNewPrivs', 'CapBnd'))]
    return out
""")
        answer = self.invoke("spy", json.dumps({"paths": [self.plane.data, self.plane.dir, "/root", "/home", "/etc/shadow", "/var/lib", "/boot"]}))
        self.assertEqual(200, answer.status, answer)
        seen = answer.json()
        self.assertNotIn(SECRET, answer.text)
        self.assertNotIn(self.plane.token, answer.text)
        self.assertNotIn(self.plane.data, answer.text)
        self.assertLessEqual(set(seen["written"]), {"/dev"}, seen["written"])
        self.assertEqual([], seen["data"])
        self.assertEqual([], [n for n in seen["connected"] if not n.startswith("@")])
        self.assertIn("CapEff:\t0000000000000000", seen["caps"])
        self.assertIn("NoNewPrivs:\t1", seen["caps"])
        self.remove("spy")


if __name__ == "__main__":
    unittest.main()
