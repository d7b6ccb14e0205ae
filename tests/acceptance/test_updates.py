"""Updates under load: no failed request, no old answer after an apply, no mixed answer of code and environment."""
import collections
import concurrent.futures
import http.client
import re
import threading
import time
import unittest

from tests.acceptance.harness.case import Case, both

CONFIG = '''
resource "sless_function" "f" {
  name        = "f1"
  runtime     = "python3.11"
  source_code = "import os\\ndef handle(event, context):\\n    return 'code%d ' + os.environ['N']\\n"
  environment = { N = "%d" }
  concurrency = 4
}
resource "sless_trigger" "t" {
  name     = "t1"
  function = sless_function.f.name
  type     = "http"
  http     = { auth = "none" }
}
'''


CODE = """import os, time
ME = os.urandom(8).hex()

def handle(event, context):
    time.sleep(0.02)
    return "code%d " + os.environ["N"] + " " + ME
"""
SEVERAL = """
resource "sless_function" "f" {
  name         = "f1"
  runtime      = "python3.11"
  source_dir   = "fn"
  environment  = { N = "%d" }
  min_replicas = 2
  max_replicas = 4
}
resource "sless_trigger" "t" {
  name     = "t1"
  function = sless_function.f.name
  type     = "http"
  http     = { auth = "none" }
}
"""


@both
class Updates(Case):
    def test_twenty_updates_with_fifty_calls_each_and_no_old_answer(self):
        # Code alone, each second time the environment with it; several replicas, and the calls come all at once.
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            replicas = set()
            for n in range(20):
                self.ws.write("fn/handler.py", CODE % n)
                self.ws.config(SEVERAL % (n // 2))
                self.ws.apply()
                answers = [one.text.strip('"').split(" ") for one in pool.map(lambda _: self.plane.call(f"{self.ns}/f1"), range(50))]
                self.assertEqual({f"code{n} {n // 2}"}, {" ".join(one[:2]) for one in answers}, answers)
                now = {one[2] for one in answers}
                self.assertGreaterEqual(len(now), 2, "several replicas answered")
                self.assertEqual(set(), now & replicas, "none of an older revision")
                replicas |= now
        self.assertEqual(20, self.ws.state("sless_function.f")["revision"])
        self.assert_plan_empty()

    def test_updates_while_the_server_is_killed(self):
        # Calls before, during and after. During an update the answer is of the revision before or of the new one, after its apply of that one only.
        self.ws.config(CONFIG % (0, 0))
        self.ws.apply()
        stop, bad, answers = threading.Event(), [], collections.Counter()
        oldest = newest = 0  # revisions that may answer now

        def load():
            while not stop.is_set():
                least = oldest  # before the call: what is asked later may not be older
                try:
                    answer = self.plane.call(f"{self.ns}/f1", timeout=30)
                except (OSError, http.client.HTTPException) as error:
                    if isinstance(error, TimeoutError):
                        bad.append((least, newest, "no answer in 30 s"))
                    answers["killed"] += 1
                    time.sleep(0.01)
                    continue
                found = re.fullmatch(r'"code(\d+) (\d+)"', answer.text)
                if answer.status != 200 or not found or found[1] != found[2] or not least <= int(found[1]) <= newest:
                    bad.append((least, newest, answer))
                answers[found and int(found[1])] += 1

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            # Killed so many seconds after the apply began, or after the server took the update.
            for n, (taken, pause) in enumerate(((False, 0.3), (True, 0), (True, 0.05), (True, 0.15), (True, 0.4)), start=1):
                newest = n
                self.ws.config(CONFIG % (n, n))
                apply = self.ws.start("apply", "-auto-approve", "-input=false")
                deadline = time.monotonic() + 30
                while taken and self.plane.object("functions", self.ns, "f1")["metadata"]["generation"] <= n:
                    self.assertLess(time.monotonic(), deadline, "the update was not sent")
                    time.sleep(0.01)
                time.sleep(pause)
                self.plane.kill()
                self.plane.start()
                out, err = apply.communicate(timeout=90)
                if apply.returncode != 0:  # it had no answer for too long: the next one does the rest
                    self.ws.apply()
                oldest = n
                self.assertEqual({}, self.ws.plan())
                before = answers[n]
                deadline = time.monotonic() + 10
                while answers[n] < before + 8:
                    self.assertLess(time.monotonic(), deadline, f"no calls after update {n}; {out}{err}")
                    time.sleep(0.01)
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
        self.assertEqual([], bad[:5])
        self.assertGreater(answers["killed"], 0, "no call met a killed server")
        self.assertEqual(6, self.plane.object("functions", self.ns, "f1")["status"]["revision"])

    def test_switch_under_load_fails_no_call_and_mixes_nothing(self):
        self.ws.config(CONFIG % (0, 0))
        self.ws.apply()
        stop = threading.Event()
        problems, count = [], [0]

        def load():
            while not stop.is_set():
                answer = self.plane.call(f"{self.ns}/f1")
                text = answer.text
                count[0] += 1
                parts = text.strip('"').split(" ")
                if answer.status != 200 or len(parts) != 2 or parts[0] != "code" + parts[1]:
                    problems.append((answer.status, text))

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for n in range(1, 6):
                self.ws.config(CONFIG % (n, n))
                self.ws.apply()
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
        self.assertEqual([], problems[:5])
        self.assertGreater(count[0], 100)


@both
class Many(Case):
    def test_many_functions_at_once(self):
        self.ws.config('''
            resource "sless_function" "f" {
              count       = 20
              name        = "f${count.index}"
              runtime     = "python3.11"
              source_code = "def handle(event):\\n    return ${count.index}\\n"
            }
            resource "sless_job" "j" {
              count    = 20
              name     = "j${count.index}"
              function = sless_function.f[count.index].name
              run_id   = 1
            }
            output "results" { value = sless_job.j[*].result_json }
        ''')
        start = time.monotonic()
        self.ws.apply("-parallelism=20")
        print(f"20 functions and 20 jobs in {time.monotonic() - start:.1f} s", flush=True)
        self.assertEqual([str(n) for n in range(20)], self.ws.outputs()["results"])
        self.assert_plan_empty()
        self.ws.destroy("-parallelism=20")


if __name__ == "__main__":
    unittest.main()
