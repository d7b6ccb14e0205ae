"""What happens when something is killed: Ctrl-C, the provider, the server. Nothing is lost and nothing needs hand work."""
import os
import signal
import subprocess
import threading
import time
import unittest

from tests.acceptance.harness.case import SERVED_FUNCTION, Case, both
from tests.acceptance.harness.processes import below

SLOW = 'import time\ntime.sleep(%s)\n\ndef handle(event, context):\n    return "%s"\n'


def children(pid):
    """-> {pid: command} of the processes below `pid`."""
    found = {}
    for child in below(pid):
        try:
            with open(f"/proc/{child}/cmdline", encoding="utf-8") as file:
                found[child] = file.read().replace("\0", " ")
        except OSError:
            continue
    return found


class InterruptCase(Case):
    """A function whose start takes some seconds, and a trigger."""

    def setUp(self):
        super().setUp()
        self.ws.write("fn/handler.py", SLOW % (4, "one"))
        self.ws.config(SERVED_FUNCTION)
        self.ws.init()

    def start(self, *args):
        process = self.ws.start(*args, "-auto-approve", "-input=false")
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def until(self, holds, limit, what):
        end = time.monotonic() + limit
        while not holds():
            self.assertLess(time.monotonic(), end, f"not within {limit} s: {what}\n{self.plane.log_tail()}")
            time.sleep(0.05)

    def finish(self):
        self.ws.apply()
        self.assert_plan_empty()
        self.assertEqual('"one"', self.plane.call(f"{self.ns}/f1").text)
        items = self.plane.api(f"/v1/namespaces/{self.ns}/functions").json()["items"]
        self.assertEqual(1, len(items), "exactly one function")

    def providers(self, process):
        return [pid for pid, command in children(process.pid).items() if "terraform-provider-sless" in command]

    def kill_providers(self, process):
        killed = self.providers(process)
        self.assertTrue(killed, "terraform runs no provider; terraform " +
                        ("runs" if process.poll() is None else f"ended with {process.returncode}"))
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)


@both
class Interrupt(InterruptCase):
    def start_apply(self):
        process = self.start("apply")
        self.until(lambda: self.plane.object("functions", self.ns, "f1") is not None, 20, "the function was created")
        return process

    def test_ctrl_c_during_create(self):
        process = self.start_apply()
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 5, out + err)
        self.assertNotEqual(0, process.returncode)
        self.assertIsNotNone(self.ws.state("sless_function.f"), "state knows the function")
        self.finish()

    def test_provider_killed_during_create(self):
        process = self.start_apply()
        self.kill_providers(process)
        self.assertNotEqual(0, process.returncode)
        self.finish()

    def test_terraform_killed_during_create(self):
        process = self.start_apply()
        providers = self.providers(process)
        process.kill()
        process.communicate(timeout=30)
        deadline = time.monotonic() + 10
        while any(os.path.exists(f"/proc/{pid}") for pid in providers):
            self.assertLess(time.monotonic(), deadline, "the provider outlives terraform")
            time.sleep(0.05)
        lock = self.ws.path(".terraform.tfstate.lock.info")
        if os.path.exists(lock):
            os.remove(lock)
        # Even with a source that was repaired in between.
        self.ws.write("fn/handler.py", SLOW % (0, "one"))
        self.finish()

    def test_server_killed_during_create(self):
        process = self.start_apply()
        self.plane.kill()
        self.plane.miss_one()
        self.plane.start()
        out, err = process.communicate(timeout=120)
        if process.returncode != 0:
            self.assertIn("f1", out + err)
        self.finish()


@both
class DuringUpdate(Interrupt):
    """The same while a new revision of a function that serves is on its way."""

    def setUp(self):
        super().setUp()
        self.ws.write("fn/handler.py", SLOW % (0, "zero"))
        self.ws.apply()

    def start_apply(self):
        self.ws.write("fn/handler.py", SLOW % (4, "one"))
        process = self.start("apply")
        before = self.generation()
        self.until(lambda: self.generation() > before, 20, "the update was written")
        return process

    def generation(self):
        return self.plane.object("functions", self.ns, "f1")["metadata"]["generation"]

    def test_ctrl_c_during_create(self):
        process = self.start_apply()
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 5, out + err)
        self.assertNotEqual(0, process.returncode)
        self.assertEqual('"zero"', self.plane.call(f"{self.ns}/f1").text, "the old revision serves on")
        self.finish()
        self.assertEqual(2, self.ws.state("sless_function.f")["revision"])

    def test_provider_killed_and_the_source_set_back(self):
        process = self.start_apply()
        self.kill_providers(process)
        self.ws.write("fn/handler.py", SLOW % (0, "zero"))
        self.ws.apply()
        self.assert_plan_empty()
        self.assertEqual('"zero"', self.plane.call(f"{self.ns}/f1").text)


@both
class DuringDestroy(InterruptCase):
    """Ctrl-C and kills while everything is being deleted: a second destroy ends it, and a second apply makes all of it again."""

    TRIGGERS = 20

    def setUp(self):
        super().setUp()
        # One after the other, so that there is time to interrupt.
        self.ws.write("more.tf", '''
            resource "sless_trigger" "more" {
              count    = %d
              name     = "c${count.index}"
              function = sless_function.f.name
              type     = "cron"
              cron     = { schedule = "0 0 1 1 *" }
            }
        ''' % self.TRIGGERS)
        self.ws.write("fn/handler.py", SLOW % (0, "one"))
        self.ws.apply()

    def triggers(self):
        return len(self.plane.api(f"/v1/namespaces/{self.ns}/triggers").json()["items"])

    def start_destroy(self):
        process = self.start("destroy", "-parallelism=1")
        self.until(lambda: self.triggers() < self.TRIGGERS, 20, "the destroy began")
        return process

    def end(self):
        self.ws.destroy()
        self.assertIsNone(self.plane.object("functions", self.ns, "f1"))
        self.finish()

    def test_ctrl_c(self):
        process = self.start_destroy()
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 5)
        self.assertGreater(self.triggers(), 0, "it was interrupted in the middle")
        self.end()

    def test_provider_killed(self):
        process = self.start_destroy()
        self.kill_providers(process)
        self.assertGreater(self.triggers(), 0, "it was interrupted in the middle")
        self.end()

    def test_server_killed(self):
        process = self.start_destroy()
        self.plane.kill()
        self.plane.start()
        process.communicate(timeout=60)
        self.end()

    def test_apply_right_after_the_interrupt(self):
        process = self.start_destroy()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        self.finish()


@both
class Restart(Case):
    def test_kill_nine_settles_within_ten_seconds_and_leaves_no_process(self):
        self.ws.write("fn/handler.py", SLOW % (0, "one"))
        self.ws.config(SERVED_FUNCTION + '''
            resource "sless_job" "j" {
              name     = "j"
              function = sless_function.f.name
              run_id   = 1
            }
        ''')
        self.ws.apply()
        before = self.plane.object("functions", self.ns, "f1")["status"]
        for _ in range(3):
            self.assertEqual(200, self.plane.call(f"{self.ns}/f1").status)
            below = self.plane.processes()
            self.assertTrue(below)
            self.plane.kill()
            deadline = time.monotonic() + 5
            while any(os.path.exists(f"/proc/{pid}") for pid in below):
                self.assertLess(time.monotonic(), deadline, "orphans")
                time.sleep(0.05)
            start = time.monotonic()
            self.plane.start()
            self.assertEqual('"one"', self.plane.call(f"{self.ns}/f1").text)
            self.assertLess(time.monotonic() - start, 10)
        after = self.plane.object("functions", self.ns, "f1")["status"]
        self.assertEqual((before["revision"], before["lastBuiltAt"], "Ready"), (after["revision"], after["lastBuiltAt"], after["phase"]))
        self.assertEqual(1, self.plane.object("jobs", self.ns, "j")["status"]["attempts"])
        self.assert_plan_empty()

    def test_sigterm_drains(self):
        self.ws.write("fn/handler.py", "import time\ndef handle(event, context):\n    print('begun', flush=True)\n    time.sleep(2)\n    return 'done'\n")
        self.ws.config(SERVED_FUNCTION)
        self.ws.apply()
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.plane.call(f"{self.ns}/f1")))
        thread.start()
        deadline = time.monotonic() + 20
        while "begun" not in self.plane.lines(self.ns, "f1"):
            self.assertLess(time.monotonic(), deadline, "the call has not begun")
            time.sleep(0.02)
        below = self.plane.processes()
        self.assertEqual(0, self.plane.terminate())
        thread.join(20)
        self.assertEqual([200], [a.status for a in answers], "a running call ends well")
        # The kernel may take a moment to take down what lived in a sandbox's pid namespace.
        deadline = time.monotonic() + 2
        while any(os.path.exists(f"/proc/{pid}") for pid in below):
            self.assertLess(time.monotonic(), deadline, "orphans")
            time.sleep(0.05)
        self.plane.start()
        self.assert_plan_empty()


class TwoServers(unittest.TestCase):
    def test_second_server_on_one_data_directory_is_refused(self):
        from tests.acceptance.harness.control_plane import BIN, ControlPlane
        plane = ControlPlane().start()
        self.addCleanup(plane.stop)
        done = subprocess.run([os.path.join(BIN, "slessd"), "serve", "--data-dir", plane.data, "--listen", "127.0.0.1:0"],
                              capture_output=True, text=True, timeout=20, check=False)
        self.assertNotEqual(0, done.returncode)
        self.assertIn(str(plane.process.pid), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
