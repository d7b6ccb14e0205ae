"""sless_job with a real terraform: one run, never twice, run again, failures and further attempts, import."""
import time
import unittest

from tests.acceptance.harness.case import Case, both

# Counts its runs in a file of the test's own, so that "never twice" is seen from outside. The sandbox hides the file system, so the
# handler counts over HTTP-free means: its log. See runs().
PY = '''
import os, sys, time

def handle(event, context):
    print("run", event.get("n", 0), flush=True)
    if event.get("sleep"):
        time.sleep(event["sleep"])
    if event.get("fail"):
        raise ValueError("asked to fail")
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


@both
class Life(Case):
    def setUp(self):
        super().setUp()
        self.ws.write("fn/handler.py", PY)

    def runs(self):
        """-> how often the handler began, from the function's log."""
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/logs?limit=1000&stream=stdout")
        self.assertEqual(200, answer.status, answer)
        return answer.text.count("run ")

    def state(self):
        return self.ws.state("sless_job.j")

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

    def test_event_is_compared_by_meaning(self):
        self.ws.config(job('run_id = 1\n event_json = "{\\"a\\": 1, \\"b\\": [1, 2]}"'))
        self.ws.apply()
        self.ws.config(job('run_id = 1\n event_json = "{ \\"b\\":[1,2], \\"a\\":1.0 }"'))
        self.assertEqual({}, self.ws.plan())

    def test_failed_run_fails_the_apply_and_the_next_tries_again(self):
        self.ws.config(job('run_id = 1\n event_json = jsonencode({ fail = true })'))
        done = self.ws.apply_fails()
        self.assert_says(done, "ValueError", "asked to fail", "handler.py:9")
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
        self.assertLessEqual(self.runs(), 2)
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


if __name__ == "__main__":
    unittest.main()
