"""sless_job with a real terraform: one run, never twice, run again, failures and further attempts, import, and all of that when something is killed."""
import os
import signal
import threading
import time
import unittest

from tests.acceptance.harness.case import Case, both
from tests.acceptance.harness.terraform_cli import Workspace
from tests.acceptance.test_interrupt import children

# The log of the function tells how often it ran: see runs().
PY = '''
import os, sys, time

def handle(event, context):
    print("run", event.get("n", 0), flush=True)
    if event.get("sleep"):
        time.sleep(event["sleep"])
        print("slept", event["sleep"], flush=True)
    if event.get("fail"):
        raise ValueError("asked to fail")
    end = time.time() + event.get("stubborn", 0)
    while time.time() < end:
        try:
            print("alive", context.request_id, flush=True)
            time.sleep(0.1)
        except BaseException:
            pass
    return {"n": event.get("n", 0)}
'''
FUNCTION = '''
resource "sless_function" "f" {
  name       = "f1"
  runtime    = "python3.11"
  source_dir = "fn"
}
'''


def job(body, name="j1"):
    return FUNCTION + 'resource "sless_job" "j" {\n  name = "%s"\n  function = sless_function.f.name\n%s\n}\n' % (name, body)


class JobCase(Case):
    def setUp(self):
        super().setUp()
        self.ws.write("fn/handler.py", PY)

    def runs(self, word="run"):
        """-> how often the handler began, from the function's log."""
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/logs?limit=1000&stream=stdout")
        return sum(item["line"].startswith(word + " ") for item in answer.json()["items"]) if answer.status == 200 else 0

    def history(self, name="j1"):
        """-> [(run_id, phase)] of the job's runs, newest first."""
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/jobs/{name}/runs")
        self.assertEqual(200, answer.status, answer)
        return [(run["spec"]["runId"], run["status"]["phase"]) for run in answer.json()["items"]]

    def state(self):
        return self.ws.state("sless_job.j")

    def until(self, holds, limit, what):
        end = time.monotonic() + limit
        while not holds():
            self.assertLess(time.monotonic(), end, f"not within {limit} s: {what}\n{self.plane.log_tail()}")
            time.sleep(0.05)

    def start_apply(self, runs=1):
        """Starts an apply. -> Popen, once the handler has begun that many runs."""
        process = self.ws.start("apply", "-auto-approve", "-input=false", "-no-color")
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        self.until(lambda: self.runs() == runs or process.poll() is not None, 30, "the run began")
        return process

    def fails(self, process):
        """-> what a started apply, which must fail, says in one line."""
        text = "".join(process.communicate(timeout=60))
        self.assertNotEqual(0, process.returncode, text)
        return " ".join(text.replace("│", " ").split())

    def kill_providers(self, process):
        found = [pid for pid, command in children(process.pid).items() if "terraform-provider-sless" in command]
        self.assertTrue(found)
        for pid in found:
            os.kill(pid, signal.SIGKILL)


@both
class Life(JobCase):
    def test_skipped_run_again_and_back(self):
        self.ws.config(job(""))
        self.ws.apply()
        self.assertEqual(("Skipped", 0), (self.state()["phase"], self.state()["run_id"]))
        self.assert_plan_empty()
        self.assertEqual(0, self.runs())

        self.ws.config(job('run_id = 1\n event_json = jsonencode({ n = 5 })'))
        self.ws.apply()
        state = self.state()
        self.assertEqual(("Succeeded", '{"n":5}', 1), (state["phase"], state["result_json"].replace(" ", ""), state["attempts"]))
        self.assertIn("run 5", state["log_tail"])
        self.assert_plan_empty()
        self.ws.apply()
        self.assertEqual(1, self.runs())

        # A change of the event alone runs nothing.
        self.ws.config(job('run_id = 1\n event_json = jsonencode({ n = 6 })'))
        self.assert_one_change("sless_job.j", "event_json")
        self.ws.apply()
        self.assertEqual('{"n":5}', self.state()["result_json"].replace(" ", ""))
        self.assert_plan_empty()
        self.assertEqual(1, self.runs())

        self.ws.config(job('run_id = 3\n event_json = jsonencode({ n = 6 })'))
        self.assertEqual(["update"], self.ws.plan()["sless_job.j"].actions)
        self.ws.apply()
        self.assertEqual('{"n":6}', self.state()["result_json"].replace(" ", ""))
        self.assertEqual(2, self.runs())
        listed = self.plane.api(f"/v1/namespaces/{self.ns}/jobs/j1/runs").json()["items"]
        self.assertEqual([3, 1], [run["spec"]["runId"] for run in listed])

        # Lowered to another positive number: refused at plan, naming the last run.
        self.ws.config(job('run_id = 2\n event_json = jsonencode({ n = 6 })'))
        self.assert_says(self.ws.plan_fails(), "run_id", "3")

        self.ws.config(job('run_id = 0\n event_json = jsonencode({ n = 6 })'))
        self.ws.apply()
        self.assertEqual("Skipped", self.state()["phase"])
        self.assert_plan_empty()
        self.assertEqual(2, self.runs())

    def test_an_attribute_changes_or_drifts_alone_and_nothing_runs(self):
        self.ws.config(job("run_id = 1") + FUNCTION.replace('"f" {', '"g" {').replace('"f1"', '"g1"'))
        self.ws.apply()
        lines = ""
        for name, line, theirs in (
            ("event_json", 'event_json = jsonencode({ n = 2 })', {"eventJson": '{"n":3}'}),
            ("max_retries", "max_retries = 2", {"maxRetries": 3}),
            ("wait_timeout_sec", "wait_timeout_sec = 60", {"waitTimeoutSec": 61}),
            ("function", "function = sless_function.g.name", {"function": "f1"}),
        ):
            with self.subTest(name):
                lines += line + "\n"
                self.ws.write("override.tf", 'resource "sless_job" "j" {\n%s}\n' % lines)
                self.assert_one_change("sless_job.j", name)
                self.ws.apply()
                self.assert_plan_empty()
                mine = self.plane.object("jobs", self.ns, "j1")["spec"]
                answer = self.plane.api(f"/v1/namespaces/{self.ns}/jobs/j1", "PATCH", {"spec": theirs}, {"Content-Type": "application/merge-patch+json"})
                self.assertEqual((200, mine | theirs), (answer.status, answer.json()["spec"]))
                self.assert_one_change("sless_job.j", name)
                self.ws.apply()
                self.assertEqual(mine, self.plane.object("jobs", self.ns, "j1")["spec"])
                self.assert_plan_empty()
        self.assertEqual((1, 1, [(1, "Succeeded")]), (self.runs(), self.state()["attempts"], self.history()))
        self.assertFalse([line for line in self.plane.lines(self.ns, "g1") if line.startswith("run ")])

    def test_event_is_compared_by_meaning(self):
        self.ws.config(job('run_id = 1\n event_json = "{\\"a\\": 1, \\"b\\": [1, 2]}"'))
        self.ws.apply()
        self.ws.config(job('run_id = 1\n event_json = "{ \\"b\\":[1,2], \\"a\\":1.0 }"'))
        self.assertEqual({}, self.ws.plan())

    def test_failed_run_fails_the_apply_and_the_next_tries_again(self):
        self.ws.config(job('run_id = 1\n event_json = jsonencode({ fail = true })'))
        done = self.ws.apply_fails()
        self.assert_says(done, "ValueError", "asked to fail", "handler.py:10")
        self.assertEqual(1, self.runs())
        self.ws.apply_fails()
        self.assertEqual(2, self.runs())
        found = self.plane.object("jobs", self.ns, "j1")
        self.assertEqual(("Failed", 2), (found["status"]["phase"], found["status"]["attempts"]))
        self.ws.config(job('run_id = 1\n event_json = jsonencode({ n = 1 })'))
        self.ws.apply()
        self.assertEqual("Succeeded", self.state()["phase"])
        self.assertEqual(3, self.runs())
        self.assert_plan_empty()

    def test_failed_rerun_in_place(self):
        self.ws.config(job('run_id = 1'))
        self.ws.apply()
        self.ws.config(job('run_id = 2\n event_json = jsonencode({ fail = true })'))
        self.assert_says(self.ws.apply_fails(), "asked to fail")
        self.assertEqual(["update"], self.ws.plan()["sless_job.j"].actions, "a failed run is tried again")
        self.assert_says(self.ws.apply_fails(), "asked to fail")
        self.assertEqual(3, self.runs())
        self.assertEqual(2, self.plane.object("jobs", self.ns, "j1")["status"]["attempts"])

    def test_a_failed_run_is_tried_again_after_a_zero_too(self):
        failing = job('run_id = 1\n event_json = jsonencode({ fail = true })')
        self.ws.config(failing)
        self.ws.apply_fails()
        self.ws.config(job("run_id = 0"))
        self.ws.apply()
        self.ws.config(failing)
        self.assert_says(self.ws.apply_fails(), "attempt 2", "asked to fail")
        self.ws.config(job("run_id = 0"))
        self.ws.apply()
        self.ws.config(job("run_id = 1"))
        self.ws.apply()
        self.assertEqual(("Succeeded", 3), (self.state()["phase"], self.state()["attempts"]))
        self.assertEqual(3, self.runs())

    def test_a_destroyed_failed_run_is_waited_for_when_it_goes_on(self):
        self.ws.config(job('run_id = 1\n event_json = jsonencode({ fail = true })'))
        self.ws.apply_fails()
        self.ws.run("destroy", "-auto-approve", "-target=sless_job.j")
        self.ws.config(job("run_id = 1"))
        self.ws.apply()
        self.assertEqual("Succeeded", self.state()["phase"])
        self.assert_plan_empty()

    def test_retries(self):
        self.ws.config(job('run_id = 1\n max_retries = 2\n event_json = jsonencode({ fail = true })'))
        self.ws.apply_fails()
        self.assertEqual(3, self.runs())

    def test_wait_timeout_and_the_next_apply_waits_on(self):
        self.ws.config(job('run_id = 1\n wait_timeout_sec = 1\n event_json = jsonencode({ sleep = 4, n = 9 })'))
        self.assert_says(self.ws.apply_fails(), "wait_timeout_sec")
        self.ws.config(job('run_id = 1\n wait_timeout_sec = 60\n event_json = jsonencode({ sleep = 4, n = 9 })'))
        self.ws.apply()
        self.assertEqual("Succeeded", self.state()["phase"])
        self.assertEqual(1, self.runs())
        self.assert_plan_empty()

    def test_a_run_that_succeeds_after_the_wait_never_runs_again(self):
        late = 'run_id = 2\n wait_timeout_sec = 1\n event_json = jsonencode({ sleep = 3, n = 9 })'
        self.ws.config(job(late))
        self.assert_says(self.ws.apply_fails(), "wait_timeout_sec")
        self.until(lambda: self.history() == [(2, "Succeeded")], 15, "the run ended")
        self.ws.config(job(late.replace("run_id = 2", "run_id = 1")))
        self.assert_says(self.ws.plan_fails(), "run_id lowered", "run_id 2")
        self.ws.config(job(late))
        self.ws.apply()
        self.assertEqual(("Succeeded", 1, 1), (self.state()["phase"], self.state()["attempts"], self.runs()))
        self.assert_plan_empty()

    def test_another_name_after_a_failed_create_leaves_no_job_behind(self):
        self.ws.config(job('run_id = 1\n event_json = jsonencode({ fail = true })'))
        self.ws.apply_fails()
        self.ws.config(job('run_id = 1', name="j2"))
        self.ws.apply()
        self.assertIsNone(self.plane.object("jobs", self.ns, "j1"))
        self.assert_plan_empty()

    def test_import(self):
        self.ws.config(job('run_id = 2\n event_json = jsonencode({ n = 5 })\n wait_timeout_sec = 77\n max_retries = 1'))
        self.ws.apply()
        before = self.state()
        self.ws.ok("state", "rm", "sless_job.j")
        self.ws.ok("import", "-input=false", "sless_job.j", f"{self.ns}/j1")
        self.assert_plan_empty()
        self.assertEqual(before, self.state())
        self.assertEqual(1, self.runs())

    def test_deleted_out_of_band_then_reading_runs_nothing(self):
        self.ws.config(job('run_id = 1'))
        self.ws.apply()
        for _ in range(3):
            self.ws.ok("refresh")
        self.assertEqual(1, self.runs())
        self.plane.api(f"/v1/namespaces/{self.ns}/jobs/j1", "DELETE")
        for _ in range(100):
            if self.plane.object("jobs", self.ns, "j1") is None:
                break
            time.sleep(0.1)
        self.assertEqual(["create"], self.ws.plan()["sless_job.j"].actions)


SLEEPS = "run_id = %d\n event_json = jsonencode({ sleep = %d, n = 7 })\n max_retries = 0"


@both
class Killed(JobCase):
    """A run that goes on while who waits for it, or who runs it, is killed: never twice at once, and no hand work."""

    def finish(self, runs, history):
        self.ws.apply()
        self.assertEqual("Succeeded", self.state()["phase"])
        self.assert_plan_empty()
        self.assertEqual((runs, history), (self.runs(), self.history()))

    def test_provider_killed_during_the_first_run(self):
        self.ws.config(job(SLEEPS % (1, 4)))
        process = self.start_apply()
        self.kill_providers(process)
        process.communicate(timeout=60)
        self.assertNotEqual(0, process.returncode)
        self.finish(1, [(1, "Succeeded")])

    def test_provider_killed_during_a_further_run(self):
        self.ws.config(job(SLEEPS % (1, 0)))
        self.ws.apply()
        self.ws.config(job(SLEEPS % (2, 4)))
        process = self.start_apply(2)
        self.kill_providers(process)
        process.communicate(timeout=60)
        self.assertNotEqual(0, process.returncode)
        self.assertEqual({"sless_job.j"}, set(self.ws.plan("-refresh=false")))
        self.finish(2, [(2, "Succeeded"), (1, "Succeeded")])

    def test_terraform_killed_during_the_first_run(self):
        self.ws.config(job(SLEEPS % (1, 3)))
        process = self.start_apply()
        process.kill()
        process.communicate(timeout=30)
        if os.path.exists(self.ws.path(".terraform.tfstate.lock.info")):
            os.remove(self.ws.path(".terraform.tfstate.lock.info"))
        self.finish(1, [(1, "Succeeded")])

    def test_ctrl_c_ends_the_wait_and_not_the_run(self):
        self.ws.config(job(SLEEPS % (1, 5)))
        process = self.start_apply()
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 4, out + err)
        self.assertNotEqual(0, process.returncode)
        self.assertIn("goes on at the server", " ".join((out + err).split()))
        self.assertIsNotNone(self.state(), "state knows the job")
        self.finish(1, [(1, "Succeeded")])

    def test_server_killed_during_the_run(self):
        self.ws.config(job(SLEEPS % (1, 3)))
        process = self.start_apply()
        self.plane.kill()
        self.plane.start()
        out, err = process.communicate(timeout=60)
        self.assertNotEqual(0, process.returncode, out + err)
        text = " ".join((out + err).replace("│", " ").split())
        self.assertIn("Interrupted", text)
        self.assertIn("attempt 1", text)
        self.assertEqual([(1, "Failed")], self.history())
        self.finish(2, [(1, "Succeeded")])
        self.assertEqual(2, self.state()["attempts"])

    def test_server_killed_with_attempts_left_tries_again_by_itself(self):
        self.ws.config(job((SLEEPS % (1, 3)).replace("max_retries = 0", "max_retries = 1")))
        process = self.start_apply()
        self.plane.kill()
        self.plane.start()
        out, err = process.communicate(timeout=60)
        self.assertEqual(0, process.returncode, out + err)
        self.assertEqual((2, 2, [(1, "Succeeded")]), (self.runs(), self.state()["attempts"], self.history()))
        self.assert_plan_empty()

    def test_server_stopped_in_good_order_lets_the_run_end(self):
        self.ws.config(job(SLEEPS % (1, 3)))
        process = self.start_apply()
        self.assertEqual(0, self.plane.terminate())
        self.plane.start()
        out, err = process.communicate(timeout=60)
        self.assertEqual(0, process.returncode, out + err)
        self.assertEqual((1, 1, [(1, "Succeeded")]), (self.runs(), self.state()["attempts"], self.history()))
        self.assert_plan_empty()


@both
class Active(JobCase):
    """What happens to a run that is going when its job changes."""

    def leave_running(self, seconds):
        """An apply that gives up waiting for run 1."""
        self.ws.config(job("run_id = 1\n wait_timeout_sec = 1\n event_json = jsonencode({ sleep = %d })" % seconds))
        self.assert_says(self.ws.apply_fails(), "wait_timeout_sec", "run 1 goes on")
        self.assertEqual([(1, "Running")], self.history())

    def test_raised_meanwhile_waits_for_the_earlier_run(self):
        self.leave_running(6)
        self.ws.config(job("run_id = 3\n event_json = jsonencode({ n = 3 })"))
        self.ws.apply()
        self.assertEqual(('{"n":3}', 2), (self.state()["result_json"].replace(" ", ""), self.runs()))
        self.assertEqual([(3, "Succeeded"), (1, "Succeeded")], self.history())
        self.assert_plan_empty()

    def test_set_to_zero_ends_it(self):
        self.leave_running(8)
        self.ws.config(job("run_id = 0\n event_json = jsonencode({ sleep = 8 })"))
        self.ws.apply()
        self.assertEqual("Skipped", self.state()["phase"])
        self.assert_plan_empty()
        self.until(lambda: self.history() == [(1, "Failed")], 5, "the run has ended")
        time.sleep(2)
        self.assertEqual(0, self.runs("slept"))

    def test_destroy_ends_it(self):
        self.leave_running(8)
        start = time.monotonic()
        self.ws.destroy()
        self.assertLess(time.monotonic() - start, 6)
        self.assertIsNone(self.plane.object("jobs", self.ns, "j1"))
        self.assertIsNone(self.plane.object("functions", self.ns, "f1"))

    def test_replace_on_demand_runs_again(self):
        self.ws.config(job("run_id = 1"))
        self.ws.apply()
        self.ws.apply("-replace=sless_job.j")
        self.assertEqual((2, [(1, "Succeeded")]), (self.runs(), self.history()))
        self.assert_plan_empty()

    def test_replaced_while_it_runs_never_runs_twice_at_once(self):
        """Another call keeps the process alive in which the old run, deaf to its end, goes on."""
        text = job("run_id = %d\n wait_timeout_sec = %d\n event_json = jsonencode({ stubborn = %d })").replace('"fn"', '"fn"\n  concurrency = 2')
        self.ws.config(text % (1, 60, 0))
        self.ws.apply()
        self.ws.config(text % (2, 1, 30))
        self.assert_says(self.ws.apply_fails(), "run 2 goes on")
        other = threading.Thread(target=lambda: self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/invoke", "POST", {"sleep": 4}))
        other.start()
        self.until(lambda: self.runs() == 3, 5, "the other call has begun")
        self.ws.config(text % (2, 60, 1))
        self.ws.apply("-replace=sless_job.j")
        other.join(10)
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/logs?limit=1000&stream=stdout")
        alive = [item["line"] for item in answer.json()["items"] if item["line"].startswith("alive ")]
        first, second = dict.fromkeys(alive)
        self.assertEqual([first] * alive.count(first) + [second] * alive.count(second), alive, "one after the other")
        self.assertEqual([(2, "Succeeded")], self.history())
        self.assert_plan_empty()

    def test_two_configurations_apply_one_job_and_it_runs_once(self):
        self.ws.config(FUNCTION)
        self.ws.apply()
        other = Workspace(self.plane, binary=self.binary, namespace=self.ns)
        self.addCleanup(other.close)
        text = 'resource "sless_job" "j" {\n  name = "j1"\n  function = "f1"\n  run_id = 1\n  event_json = jsonencode({ sleep = 3 })\n}\n'
        self.ws.config(FUNCTION + text)
        other.config(text)
        self.ws.init()
        other.init()
        done = []
        threads = [threading.Thread(target=lambda ws=ws: done.append(ws.run("apply", "-auto-approve", "-input=false"))) for ws in (self.ws, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual((2, 1, [(1, "Succeeded")]), (len(done), self.runs(), self.history()))
        self.assertIn(0, [result.code for result in done], done)

    def overtake(self, run_id, other):
        """An apply of a run that fails, over which another writer lays its own meanwhile. -> what the apply says, in one line"""
        self.ws.config(job("run_id = %d\n event_json = jsonencode({ sleep = 2, fail = true })" % run_id))
        process = self.start_apply(self.runs() + 1)
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/jobs/j1", "PATCH", {"spec": other}, {"Content-Type": "application/merge-patch+json"})
        self.assertEqual(200, answer.status, answer)
        return self.fails(process)

    def test_a_run_that_another_writer_overtakes_is_not_green(self):
        text = self.overtake(12, {"runId": 13, "eventJson": '{"n":1}'})
        for part in ("changed while this apply waited for it", "run_id 12", "run_id 13", "plan again to see what differs"):
            self.assertIn(part, text)
        self.assertEqual((13, "Succeeded"), (self.state()["run_id"], self.state()["phase"]), "state holds what the server has")
        self.assert_says(self.ws.plan_fails(), "run_id lowered")
        self.ws.config(job("run_id = 14"))
        self.ws.apply()
        self.assert_plan_empty()

        text = self.overtake(21, {"runId": 0})
        for part in ("changed while this apply waited for it", "run_id 21", "run_id 0"):
            self.assertIn(part, text)
        self.assertEqual((0, "Skipped"), (self.state()["run_id"], self.state()["phase"]))
        self.assertEqual((21, "Failed"), self.history()[0])

    def test_deleted_while_the_apply_waits_says_so(self):
        self.ws.config(job(SLEEPS % (1, 3)))
        process = self.start_apply()
        self.assertIn(self.plane.api(f"/v1/namespaces/{self.ns}/jobs/j1", "DELETE").status, (200, 202, 204))
        self.assertIn("is gone: somebody deleted it while this apply waited for it. Plan and apply again.", self.fails(process))
        self.assertIsNone(self.state())
        self.ws.apply()
        self.assert_plan_empty()


@both
class Texts(JobCase):
    """What a person reads when a job does not end well."""

    def test_no_such_function(self):
        self.ws.config('resource "sless_job" "j" {\n  name = "j1"\n  function = "nobody"\n  run_id = 1\n}\n')
        self.assert_says(self.ws.apply_fails(), 'function "nobody" does not exist', "main.tf line", 'function = "nobody"', "sless_function.<label>.name")

    def test_a_lowered_run_id_names_the_last_run_and_the_next(self):
        self.ws.config(job("run_id = 5"))
        self.ws.apply()
        self.ws.config(job("run_id = 0"))
        self.ws.apply()
        self.ws.config(job("run_id = 4"))
        self.assert_says(self.ws.plan_fails(), "run_id lowered", "run_id 5", "Take 6 or more", "run_id = 4")
        self.ws.config(job("run_id = 5"))
        self.ws.run("apply", "-auto-approve", "-input=false")
        self.assertEqual(1, self.runs(), "a run_id that succeeded never runs again")

    def test_a_timeout_of_the_handler(self):
        self.ws.config(FUNCTION.replace('"fn"', '"fn"\n  timeout_sec = 1') + 'resource "sless_job" "j" {\n  name = "j1"\n  function = sless_function.f.name\n'
                       '  run_id = 1\n  event_json = jsonencode({ sleep = 30 })\n}\n')
        self.assert_says(self.ws.apply_fails(), "Timeout", "timeout_sec", "1")
        self.assertEqual(0, self.runs("slept"))


if __name__ == "__main__":
    unittest.main()
