"""Cron through stops of the server: misfire, and overlap with runs that take longer than the schedule allows.

No clock is changed. What a server finds after a long stop is made by moving back, in its stopped store, the time up to which planned times were
looked at. One test waits for the next minute, since that is the schedule's grain.
"""
import datetime
import json
import os
import sqlite3
import time
import unittest

from tests.acceptance.test_server import ServerCase

CODE = '''
import time

def handle(event):
    print("RAN", event["tag"], flush=True)
    while time.time() < event.get("until", 0):
        time.sleep(0.05)
    print("END", event["tag"], flush=True)
'''


def stamp(unix):
    return datetime.datetime.fromtimestamp(unix, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class CronCase(ServerCase):
    def cron(self, name, schedule, **spec):
        payload = json.dumps({"tag": name, **spec.pop("payload", {})})
        made = self.put("triggers", name, {"function": "f", "type": "cron", "cron": {"schedule": schedule, "payload": payload, **spec}})
        return self.wait("triggers", name, made["metadata"]["generation"])

    def log(self):
        return self.plane.lines("default", "f")

    def count(self, line):
        return self.log().count(line)

    def skipped(self, name):
        return self.plane.object("triggers", "default", name)["status"]["skipped"]

    def restart_as_if_stopped_since(self, unix):
        """Ends slessd and starts it on a store whose triggers were looked at last at that time."""
        self.assertEqual(0, self.plane.terminate())
        store = sqlite3.connect(os.path.join(self.plane.data, "sless.db"))
        with store:
            changed = store.execute("UPDATE object SET updated_at = ?, status = json_remove(status, '$.lastFire') WHERE kind = 'Trigger'",
                                    (stamp(unix),)).rowcount
        store.close()
        self.assertGreater(changed, 0)
        self.plane.start()


class Misfire(CronCase):
    def test_each_policy_after_a_stop_and_never_twice(self):
        self.function("f", CODE, concurrency=20)
        now = time.time()
        # Three planned times in the stop, none near now.
        minutes = sorted({time.gmtime(now - 60 * back).tm_min for back in (4, 6, 8)})
        schedule = ",".join(map(str, minutes)) + " * * * *"
        for policy in ("skip", "once", "all"):
            self.cron(policy, schedule, misfire=policy)
        self.cron("off", schedule, misfire="all")
        self.plane.api("/v1/namespaces/default/triggers/off", "PATCH", '{"spec":{"enabled":false}}', {"Content-Type": "application/merge-patch+json"})
        self.until(lambda: self.plane.object("triggers", "default", "off")["status"]["phase"] == "Disabled", 5, "it is disabled")
        self.restart_as_if_stopped_since(now - 540)
        self.until(lambda: self.count("END all") == 3 and self.count("END once") == 1, 15, "what was missed is made up for")
        self.assertEqual((3, 2, 0), tuple(self.skipped(name) for name in ("skip", "once", "all")))
        # "all" runs one after another.
        self.assertEqual(["RAN all", "END all"] * 3, [line for line in self.log() if line.endswith(" all")])
        # A planned time is the name of its run: whatever is looked at again, nothing runs again. One that is looked at after all others does run.
        self.cron("z", schedule, misfire="once")
        self.plane.kill()
        self.plane.start()
        self.restart_as_if_stopped_since(now - 540)
        self.until(lambda: self.count("END z") == 1, 15, "the new one is made up for")
        self.assertEqual((0, 1, 3, 0), tuple(self.count("RAN " + name) for name in ("skip", "once", "all", "off")))

    def test_a_changed_schedule_makes_up_for_nothing(self):
        self.function("f", CODE)
        self.cron("t", "@yearly", misfire="all")
        self.cron("t", "* * * * *", misfire="all", timezone="Asia/Kathmandu")
        # A run that comes later has gone all the way.
        self.job("later", "f", 1, eventJson='{"tag":"later"}')
        self.assertEqual(1, self.count("END later"))
        ran = self.count("RAN t")
        self.assertLessEqual(ran, 1, "at most the minute that began meanwhile")
        self.assertEqual(0, self.skipped("t"))


class Overlap(CronCase):
    def test_skip_queue_and_allow_when_a_run_is_still_going(self):
        # The first runs may last a whole minute and more.
        self.function("f", CODE, concurrency=20, minReplicas=1, timeoutSec=120)
        # Twelve seconds are enough for what comes before the next minute.
        left = 60 - time.time() % 60
        if left < 15:
            time.sleep(left + 0.5)
        minute = (int(time.time()) // 60 + 1) * 60
        policies = ("skip", "queue", "allow")
        for policy in policies:
            self.cron(policy, "* * * * *", overlap=policy, misfire="once", payload={"until": minute + 4})
        # Each makes up for the stop by one run, which goes on beyond the next planned time.
        self.restart_as_if_stopped_since(time.time() - 300)
        self.until(lambda: all(self.count("RAN " + policy) == 1 for policy in policies), 12, "one run each")
        self.assertLess(time.time(), minute, "this machine is too slow for this test")
        time.sleep(minute + 2 - time.time())
        self.assertEqual((1, 1, 2), tuple(self.count("RAN " + policy) for policy in policies))
        self.until(lambda: self.count("END queue") == 2, 10, "the queued run followed")
        self.assertEqual(["RAN queue", "END queue"] * 2, [line for line in self.log() if line.endswith(" queue")])
        self.assertEqual(1, self.count("RAN skip"))
        missed = self.skipped("allow")
        self.assertEqual((missed + 1, missed), (self.skipped("skip"), self.skipped("queue")))


if __name__ == "__main__":
    unittest.main()
