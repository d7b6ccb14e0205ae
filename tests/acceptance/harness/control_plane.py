"""slessd in a temp folder: start, stop, kill -9, start again; a small REST client for looking from outside.

Only the standard library. Every wait is bounded; stop() leaves no process and no file behind.
"""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

from .processes import below

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BIN = os.environ.get("SLESS_BIN", os.path.join(ROOT, "build", "bin"))


class Answer:
    """One HTTP answer. status: int; headers: dict with lower-case names; body: bytes; json(): the parsed body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.text[:300]}>"


def request(url, method="GET", body=None, headers=None, timeout=60):
    """One HTTP request on a connection of its own. body: bytes, str or a JSON value (dict, list)."""
    parts = urllib.parse.urlsplit(url)
    headers = dict(headers or {})
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    if isinstance(body, str):
        body = body.encode()
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    try:
        connection.request(method, parts.path + ("?" + parts.query if parts.query else ""), body, headers)
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class ControlPlane:
    """A slessd of its own. After start(): url, token, pid. own_session: a Ctrl-C at the terminal does not reach it.
    wrap: a command that starts it, whose arguments come first."""

    def __init__(self, config=None, args=(), env=None, own_session=False, wrap=()):
        self.dir = tempfile.mkdtemp(prefix="sless-test-")
        self.data = os.path.join(self.dir, "data")
        self.log_path = os.path.join(self.dir, "slessd.log")
        self.args = list(args)
        self.wrap = list(wrap)
        self.env = dict(os.environ, **(env or {}))
        if config is not None:
            path = os.path.join(self.dir, "slessd.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(config)
            self.args += ["--config", path]
        self.own_session = own_session
        self.process = None
        self.url = None
        self.token = None
        self._port = 0

    # --- life ---------------------------------------------------------------------------------------------------------------

    def start(self, timeout=20):
        """Starts it on a free port (the same one after a restart) and waits until it is ready."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.wrap + [os.path.join(BIN, "slessd"), "serve", "--data-dir", self.data, "--listen", f"127.0.0.1:{self._port}", *self.args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, start_new_session=self.own_session)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"slessd ended with {self.process.returncode}:\n{self.log_tail()}")
            try:
                with open(os.path.join(self.data, "server.json"), encoding="utf-8") as file:
                    info = json.load(file)
                if info["pid"] == self.process.pid or self.wrap:
                    self._port = int(info["address"].rsplit(":", 1)[1])
                    self.url = f"http://127.0.0.1:{self._port}"
                    if request(self.url + "/readyz", timeout=2).status == 200:
                        break
            except (OSError, ValueError, KeyError, http.client.HTTPException):
                pass
            time.sleep(0.02)
        else:
            raise AssertionError(f"slessd is not ready after {timeout} s:\n{self.log_tail()}")
        if self.token is None:
            self.token = self.create_token("test")
        return self

    def create_token(self, name):
        done = subprocess.run([os.path.join(BIN, "slessd"), "token", "create", "--data-dir", self.data, "--name", name],
                              capture_output=True, text=True, timeout=20, check=False)
        if done.returncode != 0:
            raise AssertionError(f"slessd token create failed: {done.stderr}")
        return done.stdout.strip()

    def kill(self):
        """kill -9, and the process is reaped."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def miss_one(self, timeout=20):
        """After kill(): returns once somebody has asked for the server in vain, on its own port."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                listener = socket.create_server(("127.0.0.1", self._port))
                break
            except OSError:  # what the server left is still on its way out
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        with listener:
            listener.settimeout(max(0, deadline - time.monotonic()))
            listener.accept()[0].close()

    def terminate(self, timeout=40):
        """SIGTERM; -> exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def stop(self):
        """Ends it (by force if it must be) and removes its folder. Raises if it did not end well."""
        code = None
        if self.process and self.process.poll() is None:
            try:
                code = self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()
                code = "still running after SIGTERM"
        log = self.log_tail()
        shutil.rmtree(self.dir, ignore_errors=True)
        if code not in (None, 0):
            raise AssertionError(f"slessd ended with {code}:\n{log}")

    def log_tail(self, lines=30):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except OSError:
            return ""

    def processes(self):
        """-> pids of what runs under this server's process, itself left out."""
        return below(self.process.pid)

    # --- REST ---------------------------------------------------------------------------------------------------------------

    def api(self, path, method="GET", body=None, headers=None, token=None, timeout=60):
        headers = {"Authorization": f"Bearer {self.token if token is None else token}", **(headers or {})}
        return request(self.url + path, method, body, headers, timeout)

    def object(self, kind, ns, name):
        """-> the object as JSON, or None if there is none. kind: functions, triggers, jobs."""
        answer = self.api(f"/v1/namespaces/{ns}/{kind}/{name}")
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise AssertionError(f"GET {kind} {ns}/{name}: {answer}")
        return answer.json()

    def lines(self, ns, function):
        """-> the newest lines (at most 1000) of a function's log, oldest first."""
        answer = self.api(f"/v1/namespaces/{ns}/functions/{function}/logs?limit=1000")
        if answer.status != 200:
            raise AssertionError(f"GET logs of {ns}/{function}: {answer}")
        return [item["line"] for item in answer.json()["items"]]

    def call(self, path, method="GET", body=None, headers=None, timeout=60):
        """A public request: path below /fn/."""
        return request(self.url + "/fn/" + path.lstrip("/"), method, body, headers, timeout)
