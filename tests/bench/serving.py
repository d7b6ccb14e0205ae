#!/usr/bin/env python3
"""How fast functions answer: requests a second, latency, and the first answer of a function that does not run yet.

The same handlers on slessd (client, gateway, runner, sandboxed interpreter) and on the Functions Framework (the public local server of
another cloud: one process, no gateway, no sandbox), both on this machine, in turns. Prints medians and the ratio to the peer.

    serving.py [--rounds 3] [--seconds 5] [--connections 16]

Needs wrk (Debian's package) and, for the peers, pip and npm with their registries; a peer that cannot be installed is left out with the
reason on stderr. Programs: build/bin (or $SLESS_BIN).
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.acceptance.harness.control_plane import ControlPlane, request  # noqa: E402

PY = 'def handle(event, context):\n    return {"statusCode": 200, "body": "hello"}\n'
JS = "exports.handle = async () => ({ statusCode: 200, body: 'hello' });\n"
PEER_PY = 'def handle(request):\n    return "hello"\n'
PEER_JS = "exports.handle = (request, response) => { response.send('hello'); };\n"
RUNTIMES = {"python": ("python3.11", PY), "node": ("nodejs20", JS)}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def first_answer(url, limit=30):
    """Calls until there is an answer of 200."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        try:
            if request(url, timeout=limit).status == 200:
                return
        except OSError:
            time.sleep(0.002)
    raise RuntimeError(f"{url} does not answer within {limit} s")


class Sless:
    def __init__(self, kind, plane):
        self.name, self.plane, self.namespace = f"sless {kind}", plane, f"bench-{kind}"
        runtime, code = RUNTIMES[kind]
        ending = {"python": "py", "node": "js"}[kind]
        entry = f"- {hashlib.sha256(code.encode()).hexdigest()} {len('handler.' + ending)}:handler.{ending}\n"
        digest = hashlib.sha256(f"sless-tree 1\n{entry}".encode()).hexdigest()  # docs/source-hash.md
        self.spec = {"runtime": runtime, "source": {"type": "code", "code": code, "hash": f"sha256:{digest}"}}
        self.put("functions/warm", {**self.spec, "replicas": 1, "concurrency": 16})
        self.put("functions/cold", {**self.spec, "idleTimeoutSec": 1})
        for name in ("warm", "cold"):
            self.put(f"triggers/{name}", {"function": name, "type": "http", "http": {"auth": "none"}})
        self.url = f"{plane.url}/fn/{self.namespace}/warm"

    def path(self, what):
        return f"/v1/namespaces/{self.namespace}/{what}"

    def put(self, what, spec):
        answer = self.plane.api(self.path(what), "PUT", {"spec": spec})
        if answer.status not in (200, 201):
            raise RuntimeError(f"PUT {what}: {answer}")
        answer = self.plane.api(self.path(what) + "?wait=ready&timeout=30")
        if answer.json()["status"]["phase"] != "Ready":
            raise RuntimeError(f"{what} is not ready: {answer}")

    def warm(self):
        first_answer(self.url)

    def rest(self):
        """Warm replicas stay, as they would; they take no processor time while nobody calls."""

    def cold(self):
        """-> seconds of the first call of a function that is scaled to zero."""
        end = time.perf_counter() + 30
        while self.plane.api(self.path("functions/cold")).json()["status"].get("readyReplicas", 0) != 0:
            if time.perf_counter() > end:
                raise RuntimeError("functions/cold does not go to zero")
            time.sleep(0.1)
        time.sleep(0.3)
        began = time.perf_counter()
        first_answer(f"{self.plane.url}/fn/{self.namespace}/cold")
        return time.perf_counter() - began


class Framework:
    """The peer: one process of the Functions Framework."""

    def __init__(self, kind, folder):
        self.name, self.folder, self.process = f"peer {kind}", folder, None
        folder.mkdir()
        if kind == "python":
            (folder / "main.py").write_text(PEER_PY)
            self.install([sys.executable, "-m", "venv", "venv"], ["venv/bin/pip", "install", "-q", "functions-framework"])
            self.command = ["venv/bin/functions-framework", "--target", "handle", "--source", "main.py"]
        else:
            (folder / "index.js").write_text(PEER_JS)
            self.install(["npm", "install", "--silent", "--no-audit", "--no-fund", "@google-cloud/functions-framework"])
            self.command = ["node", "node_modules/@google-cloud/functions-framework/build/src/main.js", "--target=handle"]

    def install(self, *commands):
        for command in commands:
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True, timeout=600)

    def start(self):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        environment = {**os.environ, "PORT": str(port), "HOST": "127.0.0.1"}
        self.process = subprocess.Popen(self.command + [f"--port={port}"], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        first_answer(self.url)

    def warm(self):
        self.start()

    def rest(self):
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
            self.process = None

    def cold(self):
        """-> seconds from the start of the process to its first answer."""
        began = time.perf_counter()
        try:
            self.start()
            return time.perf_counter() - began
        finally:
            self.rest()


def load(url, seconds, connections):
    """-> (requests a second, median ms, 99th percentile ms). Raises where an answer was not 2xx."""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url], capture_output=True, text=True,
                          timeout=seconds + 30, check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise RuntimeError(f"{url}: {done.stdout}")

    def milliseconds(percentile):
        number, unit = re.search(rf"{percentile}%\s+([\d.]+)(us|ms|s)", done.stdout).groups()
        return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]

    return float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1)), milliseconds(50), milliseconds(99)


def peers(kinds, folder):
    for kind in kinds:
        try:
            yield Framework(kind, folder / kind)
        except (subprocess.SubprocessError, OSError) as reason:
            text = getattr(reason, "stderr", None) or str(reason)
            print(f"no peer for {kind}: {text.strip()[-300:]}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        print("wrk is needed: apt install wrk", file=sys.stderr)
        return 1
    plane = ControlPlane()
    with tempfile.TemporaryDirectory(prefix="serving-") as temp:
        subjects = []
        try:
            plane.start()
            subjects = [Sless(kind, plane) for kind in RUNTIMES] + list(peers(RUNTIMES, pathlib.Path(temp)))
            rows = {s.name: [] for s in subjects}
            for _ in range(options.rounds):
                for subject in subjects:
                    cold = subject.cold()
                    subject.warm()
                    load(subject.url, 1, options.connections)
                    rows[subject.name].append((*load(subject.url, options.seconds, options.connections), cold * 1000))
                    subject.rest()
        finally:
            for subject in subjects:
                subject.rest()
            plane.stop()
    medians = {name: [statistics.median(column) for column in zip(*row)] for name, row in rows.items()}
    print(f"{options.connections} connections, {options.rounds} rounds of {options.seconds} s")
    print(f"{'':<16}{'requests/s':>12}{'to peer':>9}{'median ms':>11}{'99 % ms':>9}{'first answer ms':>17}{'to peer':>9}")
    for name, (rate, middle, high, cold) in medians.items():
        peer = medians.get("peer " + name.split()[1])
        ratio = [f"{rate / peer[0]:.2f}", f"{cold / peer[3]:.2f}"] if peer else ["-", "-"]
        print(f"{name:<16}{rate:>12.0f}{ratio[0]:>9}{middle:>11.2f}{high:>9.2f}{cold:>17.0f}{ratio[1]:>9}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
