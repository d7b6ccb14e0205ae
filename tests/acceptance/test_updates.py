"""Updates under load: no failed request, no old answer after an apply, no mixed answer of code and environment."""
import threading
import time
import unittest

from tests.acceptance.harness.case import Case

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


class Updates(Case):
    def test_twenty_updates_with_fifty_calls_each_and_no_old_answer(self):
        for n in range(20):
            self.ws.config(CONFIG % (n, n))
            self.ws.apply()
            answers = {self.plane.call(f"{self.ns}/f1").text for _ in range(50)}
            self.assertEqual({f'"code{n} {n}"'}, answers)
        self.assertEqual(20, self.ws.state("sless_function.f")["revision"])
        self.assert_plan_empty()

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
