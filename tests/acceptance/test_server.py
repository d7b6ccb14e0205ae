"""slessd as a program: life, kill -9 and restart, jobs exactly once, cron, failed builds, revisions switched under load. No terraform.

SLESS_BIN names the folder with slessd (default build/bin). Every wait is bounded.
"""
import hashlib
import io
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time
import unittest
import zipfile

from .harness import processes
from .harness.control_plane import BIN, ControlPlane, request

SLESSD = os.path.join(BIN, "slessd")
FINAL = {"functions": ("Ready", "Failed"), "triggers": ("Ready", "Disabled", "Failed"), "jobs": ("Succeeded", "Failed", "Skipped")}


def pack(files):
    """{path: text} -> (hash of the tree, zip)."""
    lines, data = [], io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in sorted(files.items()):
            raw, name = text.encode(), path.encode()
            lines.append((name, b"- %s %d:%s\n" % (hashlib.sha256(raw).hexdigest().encode(), len(name), name)))
            archive.writestr(path, raw)
    tree = hashlib.sha256(b"sless-tree 1\n" + b"".join(line for _, line in sorted(lines))).hexdigest()
    return "sha256:" + tree, data.getvalue()


class ServerCase(unittest.TestCase):
    config = None

    def setUp(self):
        self.plane = ControlPlane(config=self.config)
        self.addCleanup(self.plane.stop)
        self.plane.start()

    def put(self, kind, name, spec, want=(200, 201)):
        answer = self.plane.api(f"/v1/namespaces/default/{kind}/{name}", "PUT", {"spec": spec})
        self.assertIn(answer.status, want, answer)
        return answer.json()

    def wait(self, kind, name, generation, timeout=30):
        """-> the object once that generation reached a final phase."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(0, int(deadline - time.monotonic()))
            answer = self.plane.api(f"/v1/namespaces/default/{kind}/{name}?wait=ready&generation={generation}&timeout={min(left, 20)}")
            self.assertEqual(200, answer.status, answer)
            thing = answer.json()
            if thing["status"]["observedGeneration"] >= generation and thing["status"]["phase"] in FINAL[kind]:
                return thing
            self.assertLess(time.monotonic(), deadline, thing)

    def upload(self, files):
        tree, data = pack(files)
        answer = self.plane.api(f"/v1/namespaces/default/code/{tree}", "PUT", data)
        self.assertIn(answer.status, (200, 201), answer)
        return tree

    def function(self, name, files, phase="Ready", **spec):
        if isinstance(files, str):
            files = {"handler.py": files}
        spec = {"runtime": "python3.11", "source": {"type": "dir", "path": "src", "hash": self.upload(files)}, **spec}
        thing = self.wait("functions", name, self.put("functions", name, spec)["metadata"]["generation"])
        self.assertEqual(phase, thing["status"]["phase"], thing)
        return thing

    def http_trigger(self, function, name="web", **http):
        made = self.put("triggers", name, {"function": function, "type": "http", "http": http})
        return self.wait("triggers", name, made["metadata"]["generation"])

    def job(self, name, function, run_id, **spec):
        made = self.put("jobs", name, {"function": function, "runId": run_id, **spec})
        return self.wait("jobs", name, made["metadata"]["generation"])

    def until(self, holds, timeout=20, what="it holds"):
        deadline = time.monotonic() + timeout
        while True:
            value = holds()
            if value:
                return value
            self.assertLess(time.monotonic(), deadline, f"not within {timeout} s: {what}\n{self.plane.log_tail()}")
            time.sleep(0.05)


class Program(unittest.TestCase):
    def run_it(self, *args, **kwargs):
        return subprocess.run([SLESSD, *args], capture_output=True, text=True, timeout=30, check=False, **kwargs)

    def test_help_and_version(self):
        self.assertRegex(self.run_it("--version").stdout, r"^slessd \d+\.\d+\.\d+\n$")
        for words in (["--help"], ["serve", "--help"], ["token", "--help"], ["token", "create", "--help"], ["config", "--help"]):
            done = self.run_it(*words)
            self.assertEqual(0, done.returncode, words)
            self.assertIn("--help", done.stdout)

    def test_wrong_settings_say_where(self):
        plane = ControlPlane(config="http:\n  wrokers: 3\n")
        self.addCleanup(plane.stop)
        done = self.run_it("serve", "--data-dir", plane.data, *plane.args)
        self.assertEqual(1, done.returncode)
        self.assertIn("slessd.yaml:2", done.stderr)
        self.assertIn('did you mean "http.workers"', done.stderr)
        done = self.run_it("serve")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("--data-dir", done.stderr)
        self.assertIn("127.0.0.1:nowhere", self.run_it("serve", "--data-dir", plane.data, "--listen", "127.0.0.1:nowhere").stderr)

    def test_config_prints_what_counts(self):
        done = self.run_it("config", "--http-workers", "7", env={**os.environ, "SLESS_JOBS_WORKERS": "9"})
        self.assertIn("workers: 7", done.stdout)
        self.assertIn("workers: 9", done.stdout)

    def test_a_flag_wins_over_the_file_also_to_switch_off(self):
        plane = ControlPlane(config="insecure_no_sandbox: true\n")
        self.addCleanup(plane.stop)
        for flag, want in (([], "true"), (["--insecure-no-sandbox=false"], "false"), (["--insecure-no-sandbox"], "true")):
            done = self.run_it("config", *plane.args, *flag)
            self.assertIn(f"insecure_no_sandbox: {want}", done.stdout, (flag, done.stderr))

    def test_a_token_that_nobody_could_read_is_deleted_again(self):
        plane = ControlPlane()
        self.addCleanup(plane.stop)
        words = ["--data-dir", plane.data, "--name", "lost"]
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([SLESSD, "token", "create", *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("No space left", done.stderr)
        self.assertIn('"lost" was deleted again', done.stderr)
        self.assertEqual("", self.run_it("token", "list", "--data-dir", plane.data).stdout)
        self.assertEqual(0, self.run_it("token", "create", *words).returncode)

    def test_lists_no_tokens_of_a_folder_that_is_none(self):
        plane = ControlPlane()
        self.addCleanup(plane.stop)
        for words in (["list"], ["delete", "--name", "x"]):
            done = self.run_it("token", *words, "--data-dir", plane.data)
            self.assertEqual((1, ""), (done.returncode, done.stdout))
            self.assertIn(plane.data, done.stderr)
            self.assertFalse(os.path.exists(plane.data))

    def test_names_a_command_that_is_none(self):
        for words, want in ((["sreve"], 'did you mean "serve"?'), (["bogus"], "there are serve, config, token"), (["token", "lits"], 'did you mean "list"?')):
            done = self.run_it(*words)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(f'"{words[-1]}"', done.stderr)
            self.assertIn(want, done.stderr)

    def test_a_configuration_that_is_no_file(self):
        for path, want in (("/tmp", "folder"), ("/nowhere/x", "No such file"), ("/proc/self/mem", "Input/output error")):
            done = self.run_it("config", "--config", path)
            self.assertEqual(1, done.returncode)
            self.assertIn(path, done.stderr)
            self.assertIn(want, done.stderr)

    def test_without_standard_descriptors(self):
        plane = ControlPlane(wrap=["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"])
        self.addCleanup(plane.stop)
        plane.start()
        self.assertEqual(200, plane.api("/v1/info").status)
        with open(os.path.join(plane.data, "lock"), encoding="ascii") as file:
            self.assertEqual(str(plane.process.pid), file.read())
        for closed in ("0<&- 1>&- 2>&-", "1>&-"):
            done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", SLESSD, "token", "create", "--data-dir", plane.data, "--name", "x"],
                                  stderr=subprocess.DEVNULL, timeout=30, check=False)
            self.assertEqual(1, done.returncode)
            self.assertNotIn("x\t", self.run_it("token", "list", "--data-dir", plane.data).stdout)

    def test_few_open_files(self):
        plane = ControlPlane(wrap=["sh", "-c", 'ulimit -n 256 && exec "$@"', "sh"])
        self.addCleanup(plane.stop)
        plane.start()
        self.assertIn("raise LimitNOFILE", plane.log_tail(100))
        idle = [socket.create_connection(("127.0.0.1", plane._port), 5) for _ in range(200)]
        try:
            idle[-1].settimeout(5)
            self.assertIn(b"503", idle[-1].recv(100))
        finally:
            for one in idle:
                one.close()

    def test_a_hangup_drains(self):
        # These tests may run under nohup themselves.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        plane = ControlPlane()
        self.addCleanup(plane.stop)
        plane.start()
        for _ in range(3):
            plane.process.send_signal(signal.SIGHUP)
        self.assertEqual(0, plane.process.wait(30))
        self.assertIn('"stopped"', plane.log_tail())
        plane = ControlPlane(wrap=["nohup"])
        self.addCleanup(plane.stop)
        plane.start()
        plane.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertEqual(200, plane.api("/v1/info").status)

    def test_a_log_that_nobody_reads(self):
        plane = ControlPlane()
        self.addCleanup(plane.stop)
        pipe = os.path.join(plane.dir, "pipe")
        os.mkfifo(pipe)
        plane.wrap = ["sh", "-c", f'exec "$@" 2>"{pipe}"', "sh"]
        self.addCleanup(os.close, os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        plane.start()
        for _ in range(600):
            self.assertEqual(200, plane.api("/v1/info", timeout=5).status)
        self.assertEqual(0, plane.terminate(10))

    def test_a_password_in_a_request_target_is_not_logged(self):
        plane = ControlPlane()
        self.addCleanup(plane.stop)
        plane.start()
        with socket.create_connection(("127.0.0.1", plane._port), 5) as connection:
            connection.sendall(b"GET http://u:hunter2@h/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            self.assertIn(b" 400 ", connection.recv(100))
        self.assertEqual(0, plane.terminate())
        self.assertIn("@h/x", plane.log_tail(100))
        self.assertNotIn("hunter2", plane.log_tail(100))

    def test_a_port_that_is_taken(self):
        plane = ControlPlane()
        self.addCleanup(plane.stop)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = self.run_it("serve", "--data-dir", plane.data, "--listen", address)
        self.assertEqual(1, done.returncode)
        for line in done.stderr.splitlines():
            json.loads(line)
        self.assertIn(f"cannot listen on {address}", done.stderr)


class FirstProcess(ServerCase):
    """As in a container without an init: slessd inherits the orphans of its sandboxes."""

    def setUp(self):
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
        if subprocess.run([*alone, "true"], capture_output=True, timeout=20, check=False).returncode != 0:
            self.skipTest("this machine gives no pid namespace")
        self.plane = ControlPlane(wrap=alone)
        self.addCleanup(self.plane.stop)
        self.plane.start()

    def test_no_zombie_stays(self):
        server = self.plane.processes()[0]
        for _ in range(3):
            self.function("f", "def handle(event):\n    return 1\n", minReplicas=1)
            self.assertEqual(200, self.plane.api("/v1/namespaces/default/functions/f/invoke", "POST", "{}").status)
            self.assertEqual(204, self.plane.api("/v1/namespaces/default/functions/f?wait=gone&timeout=20", "DELETE").status)
        self.until(lambda: not self.zombies(server), 10, "they were buried")
        os.kill(server, signal.SIGTERM)
        self.assertEqual(0, self.plane.process.wait(40))

    def zombies(self, parent):
        return [pid for pid, one in processes.table().items() if one.state == "Z" and one.parent == parent]


class Life(ServerCase):
    def test_the_log_has_no_value_of_an_environment(self):
        thing = self.function("f", "import os\nPORT = int(os.environ['PW'])\ndef handle(event):\n    return 1\n", phase="Failed",
                              environment={"PW": "hunter2"})
        self.assertIn("hunter2", thing["status"]["failure"]["message"])
        lines = [line for line in self.plane.log_tail(1000).splitlines() if "revision failed" in line]
        self.assertEqual(("handler.py", 2), tuple(json.loads(lines[0])[key] for key in ("file", "line")), lines)
        self.assertNotIn("hunter2", self.plane.log_tail(1000))

    def test_data_is_private_and_one_server_has_it(self):
        for folder, folders, files in os.walk(self.plane.data):
            if os.path.relpath(folder, self.plane.data).startswith(("run", "layers")):
                continue
            for name in folders + files:
                path = os.path.join(folder, name)
                self.assertEqual(0, stat.S_IMODE(os.lstat(path).st_mode) & 0o077, path)
        self.assertEqual(0o700, stat.S_IMODE(os.stat(self.plane.data).st_mode))
        second = subprocess.run([SLESSD, "serve", "--data-dir", self.plane.data, "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                                timeout=30, check=False)
        self.assertEqual(1, second.returncode)
        self.assertIn(f"process {self.plane.process.pid}", second.stderr)

    def test_tokens(self):
        self.assertEqual(401, self.plane.api("/v1/info", token="sless_test_" + "0" * 64).status)
        self.assertEqual(401, request(self.plane.url + "/v1/info").status)
        token = self.plane.create_token("other")
        self.assertEqual(200, self.plane.api("/v1/info", token=token).status)
        again = subprocess.run([SLESSD, "token", "create", "--data-dir", self.plane.data, "--name", "other"], capture_output=True, text=True,
                               timeout=30, check=False)
        self.assertEqual((1, ""), (again.returncode, again.stdout))
        self.assertNotIn(token, self.plane.log_tail(1000))

    def test_sigterm_lets_a_call_end_and_leaves_no_process(self):
        self.function("slow", "import time\ndef handle(event):\n    print('begun', flush=True)\n    time.sleep(2)\n    return {'statusCode': 200, 'body': 'done'}\n")
        self.http_trigger("slow")
        answers = []
        caller = threading.Thread(target=lambda: answers.append(self.plane.call("default/slow")))
        caller.start()
        self.until(lambda: "begun" in self.plane.lines("default", "slow"), 20, "the call has begun")
        children = self.plane.processes()
        self.assertTrue(children)
        self.assertEqual(0, self.plane.terminate())
        caller.join(20)
        self.assertEqual((200, "done"), (answers[0].status, answers[0].text))
        # The kernel may take a moment to take down what lived in a sandbox's pid namespace.
        self.until(lambda: not [pid for pid in children if os.path.exists(f"/proc/{pid}")], 2, "no process is left")
        self.assertFalse(os.path.exists(os.path.join(self.plane.data, "server.json")))

    def test_a_second_signal_ends_at_once(self):
        self.function("slow", "import time\ndef handle(event):\n    print('begun', flush=True)\n    time.sleep(30)\n")
        self.http_trigger("slow")
        caller = threading.Thread(target=lambda: self.swallow(lambda: self.plane.call("default/slow")))
        caller.start()
        self.until(lambda: "begun" in self.plane.lines("default", "slow"), 20, "the call has begun")
        self.plane.process.send_signal(signal.SIGTERM)
        self.until(lambda: "stopping" in self.plane.log_tail(), 20, "the first signal was taken")
        self.plane.process.send_signal(signal.SIGINT)
        self.assertEqual(128 + signal.SIGINT, self.plane.process.wait(5))
        caller.join(10)

    @staticmethod
    def swallow(call):
        try:
            call()
        except OSError:
            pass
        except Exception as error:  # http.client's own
            assert "Remote" in type(error).__name__ or "Incomplete" in type(error).__name__, error


class Restart(ServerCase):
    def test_kill_9_serves_again_as_before_and_leaves_no_orphan(self):
        self.function("f", "def handle(event):\n    return {'statusCode': 200, 'body': 'one'}\n", minReplicas=1)
        self.http_trigger("f")
        before = self.plane.object("functions", "default", "f")
        children = self.plane.processes()
        self.assertTrue(children)
        self.plane.kill()
        self.until(lambda: not [pid for pid in children if os.path.exists(f"/proc/{pid}")], 5, "no orphan is left")
        began = time.monotonic()
        self.plane.start()
        answer = self.plane.call("default/f")
        self.assertEqual((200, "one"), (answer.status, answer.text))
        self.assertLess(time.monotonic() - began, 10)
        after = self.plane.object("functions", "default", "f")
        for field in ("phase", "revision", "serving", "lastBuiltAt", "invokeUrl", "observedGeneration"):
            self.assertEqual(before["status"][field], after["status"][field], field)
        self.assertEqual(before["metadata"]["generation"], after["metadata"]["generation"])

    def test_kill_9_at_any_moment_of_a_deployment(self):
        version = 0
        for pause in (0.0, 0.02, 0.1, 0.3):
            version += 1
            tree = self.upload({"handler.py": f"def handle(event):\n    return {{'statusCode': 200, 'body': 'v{version}'}}\n"})
            made = self.put("functions", "f", {"runtime": "python3.11", "source": {"type": "dir", "path": "s", "hash": tree}})
            time.sleep(pause)
            self.plane.kill()
            self.plane.start()
            thing = self.wait("functions", "f", made["metadata"]["generation"], 15)
            self.assertEqual("Ready", thing["status"]["phase"], thing)
            self.assertEqual(tree, thing["status"]["serving"]["source"]["hash"])
        self.http_trigger("f")
        self.assertEqual("v4", self.plane.call("default/f").text)

    def test_lost_layers_are_built_again(self):
        self.function("f", "def handle(event):\n    return {'statusCode': 200, 'body': 'one'}\n")
        self.http_trigger("f")
        self.assertEqual(0, self.plane.terminate())
        layers = os.path.join(self.plane.data, "layers", "code")
        for folder, folders, _ in os.walk(layers):
            os.chmod(folder, 0o700)
        subprocess.run(["rm", "-rf", layers], check=True)
        self.plane.start()
        answer = self.until(lambda: (lambda a: a if a.status == 200 else None)(self.plane.call("default/f")), 10, "it serves again")
        self.assertEqual("one", answer.text)
        self.assertEqual(1, self.plane.object("functions", "default", "f")["status"]["revision"])

    def test_a_layer_that_is_lost_while_it_serves_is_made_again(self):
        self.function("f", "def handle(event):\n    return {'statusCode': 200, 'body': 'one'}\n", idleTimeoutSec=1)
        self.http_trigger("f")
        self.until(lambda: not self.plane.object("functions", "default", "f")["status"].get("readyReplicas"), 20, "no replica runs")
        subprocess.run(["rm", "-rf", os.path.join(self.plane.data, "layers")], check=True)
        answer = self.until(lambda: (lambda a: a if a.status == 200 else None)(self.plane.call("default/f")), 10, "it serves again")
        self.assertEqual("one", answer.text)
        self.assertEqual(1, self.plane.object("functions", "default", "f")["status"]["revision"])

    def test_repairing_a_shared_layer_takes_nothing_from_running_replicas(self):
        files = {"handler.py": "import os\ndef handle(event):\n    return {'statusCode': 200, 'body': ' '.join(sorted(os.listdir('/var/task')))}\n",
                 "data.txt": "0123456789"}
        self.function("a", files, minReplicas=1)
        self.http_trigger("a")
        layers = os.path.join(self.plane.data, "layers", "code")
        layer = os.path.join(layers, os.listdir(layers)[0])
        damaged = os.path.join(layer, "data.txt")
        os.chmod(damaged, 0o600)
        with open(damaged, "w", encoding="utf-8") as file:
            file.write("0123")
        before = os.stat(layer).st_ino
        self.function("b", files, minReplicas=1)
        self.http_trigger("b", "web-b")
        self.assertNotEqual(before, os.stat(layer).st_ino, "the layer was made again")
        self.assertEqual(10, os.stat(damaged).st_size)
        for name in ("a", "b"):
            self.assertEqual("data.txt handler.py", self.plane.call("default/" + name).text, name)


class Jobs(ServerCase):
    # Each run leaves a line in its log: that is how the tests count what really ran.
    CODE = "def handle(event, context):\n    print('RAN ' + event['tag'])\n    return {'tag': event['tag']}\n"

    def ran(self, function, tag):
        return self.plane.lines("default", function).count(f"RAN {tag}")

    def test_a_run_id_runs_exactly_once(self):
        self.function("f", self.CODE)
        spec = {"function": "f", "runId": 1, "eventJson": '{"tag":"a"}'}
        threads = [threading.Thread(target=lambda: self.put("jobs", "j", spec, (200, 201, 409))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        done = self.job("j", "f", 1, eventJson='{"tag":"a"}')
        self.assertEqual("Succeeded", done["status"]["phase"], done)
        self.assertEqual({"tag": "a"}, json.loads(done["status"]["resultJson"]))
        self.plane.kill()
        self.plane.start()
        done = self.job("j", "f", 2, eventJson='{"tag":"b"}')
        self.assertEqual((2, "Succeeded"), (done["status"]["runId"], done["status"]["phase"]))
        self.assertEqual((1, 1), (self.ran("f", "a"), self.ran("f", "b")))
        runs = self.plane.api("/v1/namespaces/default/jobs/j/runs").json()["items"]
        self.assertEqual([2, 1], [run["spec"]["runId"] for run in runs])

    def test_kill_9_while_it_runs_counts_as_an_attempt(self):
        self.function("f", "import time\ndef handle(event):\n    print('RAN ' + event['tag'], flush=True)\n    time.sleep(event.get('sleep', 0))\n    return 1\n")
        made = self.put("jobs", "j", {"function": "f", "runId": 1, "eventJson": '{"tag":"a","sleep":20}'})
        self.until(lambda: self.ran("f", "a") == 1, 10, "the run began")
        self.plane.kill()
        self.plane.start()
        done = self.wait("jobs", "j", made["metadata"]["generation"])
        self.assertEqual(("Failed", "Interrupted", 1),
                         (done["status"]["phase"], done["status"]["failure"]["reason"], done["status"]["attempts"]))
        self.assertEqual(1, self.ran("f", "a"))

    def test_a_failed_run_says_where(self):
        self.function("f", "def handle(event):\n    x = 1\n    return x / 0\n")
        done = self.job("j", "f", 1, maxRetries=1)["status"]
        self.assertEqual(("Failed", 2), (done["phase"], done["attempts"]), done)
        self.assertEqual(("HandlerError", "handler.py", 3), tuple(done["failure"][k] for k in ("reason", "file", "line")))
        self.assertIn("ZeroDivisionError", done["failure"]["message"])

    def test_it_waits_for_its_function_and_fails_without_one(self):
        done = self.job("j", "nobody", 1)["status"]
        self.assertEqual("Failed", done["phase"])
        self.assertIn('function "nobody" does not exist', done["failure"]["message"])


class Cron(ServerCase):
    def test_it_fires_once_and_shows_what_comes(self):
        # The schedule's grain is a minute: wait for the next one.
        self.function("f", "def handle(event):\n    print('TICK', event['n'])\n", minReplicas=1)
        made = self.put("triggers", "tick", {"function": "f", "type": "cron", "cron": {"schedule": "* * * * *", "payload": '{"n":7}'}})
        thing = self.wait("triggers", "tick", made["metadata"]["generation"])
        self.assertEqual(("Ready", 5), (thing["status"]["phase"], len(thing["status"]["nextRuns"])))
        self.until(lambda: "TICK 7" in self.plane.lines("default", "f"), 75, "the trigger fired")
        self.plane.kill()
        self.plane.start()
        # A trigger and a run that come later have gone all the way: so would one that fired again.
        made = self.put("triggers", "yearly", {"function": "f", "type": "cron", "cron": {"schedule": "@yearly"}})
        self.wait("triggers", "yearly", made["metadata"]["generation"])
        self.job("later", "f", 1, eventJson='{"n":8}')
        self.assertEqual(["TICK 7", "TICK 8"], [line for line in self.plane.lines("default", "f") if line.startswith("TICK")])
        self.assertEqual(thing["status"]["nextRuns"][0], self.plane.object("triggers", "default", "tick")["status"]["lastFire"])


class Revisions(ServerCase):
    def code(self, version):
        return f"import os\ndef handle(event):\n    return {{'statusCode': 200, 'body': 'v{version} ' + os.environ['V']}}\n"

    def test_a_failed_update_leaves_the_old_one_serving(self):
        self.function("f", self.code(1), environment={"V": "1"})
        self.http_trigger("f")
        broken = self.function("f", "def handle(event:\n", phase="Failed", environment={"V": "2"})
        self.assertEqual(("handler.py", 1), (broken["status"]["failure"]["file"], broken["status"]["failure"]["line"]))
        self.assertEqual(1, broken["status"]["revision"])
        self.assertEqual("v1 1", self.plane.call("default/f").text)
        self.function("f", self.code(3), environment={"V": "3"})
        self.assertEqual("v3 3", self.plane.call("default/f").text)

    def test_switch_under_load_fails_nothing_and_mixes_nothing(self):
        self.function("f", self.code(0), environment={"V": "0"}, concurrency=4)
        self.http_trigger("f")
        stop, answers, lock = threading.Event(), [], threading.Lock()

        def call():
            while not stop.is_set():
                began = time.monotonic()
                try:
                    answer = self.plane.call("default/f")
                    entry = (began, answer.status, answer.text)
                except Exception as error:
                    entry = (began, 0, repr(error))
                with lock:
                    answers.append(entry)

        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        switched = {}
        try:
            for version in range(1, 4):
                self.function("f", self.code(version), environment={"V": str(version)}, concurrency=4)
                switched[version] = time.monotonic()
                time.sleep(0.3)
        finally:
            stop.set()
            for caller in callers:
                caller.join(30)
        self.assertEqual([], [entry for entry in answers if entry[1] != 200][:5])
        self.assertEqual([], [entry for entry in answers if entry[2] not in {f"v{n} {n}" for n in range(4)}][:5])
        # A call that began after Ready was read is answered by that revision or a later one.
        for version, when in switched.items():
            old = [entry for entry in answers if entry[0] > when and int(entry[2][1]) < version]
            self.assertEqual([], old[:5])

    def test_a_function_that_goes_takes_its_url_and_can_come_again(self):
        self.function("f", self.code(1), environment={"V": "1"})
        self.http_trigger("f")
        answer = self.plane.api("/v1/namespaces/default/functions/f", "DELETE")
        self.assertIn(answer.status, (200, 202), answer)
        self.until(lambda: self.plane.object("functions", "default", "f") is None, 10, "the function is gone")
        self.assertEqual(404, self.plane.call("default/f").status)
        trigger = self.until(lambda: (lambda t: t if t["status"]["phase"] == "Failed" else None)(self.plane.object("triggers", "default", "web")),
                             5, "the trigger says that its function is gone")
        self.assertIn('function "f" does not exist', trigger["status"]["failure"]["message"])
        self.function("f", self.code(2), environment={"V": "2"})
        self.until(lambda: self.plane.call("default/f").status == 200, 5, "it serves again")
        self.assertEqual("v2 2", self.plane.call("default/f").text)


if __name__ == "__main__":
    unittest.main()
