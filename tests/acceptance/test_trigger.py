"""sless_trigger with a real terraform: http (auth, methods, path), cron, enabled, import, drift."""
import time
import unittest

from tests.acceptance.harness.case import Case, both

PY = '''
import json

def handle(event, context):
    return {"path": event.get("path"), "method": event.get("httpMethod"), "query": event.get("queryStringParameters"), "body": event.get("body")}
'''
FUNCTION = '''
resource "sless_function" "f" {
  name       = "f1"
  runtime    = "python3.11"
  source_dir = "fn"
  %s
}
'''


def trigger(body, label="t", name=None):
    return 'resource "sless_trigger" "%s" {\n  name = "%s"\n  function = sless_function.f.name\n%s\n}\n' % (label, name or label, body)


HTTP = 'type = "http"\n http = { auth = "none" }'


@both
class Http(Case):
    def setUp(self):
        super().setUp()
        self.ws.write("fn/handler.py", PY)

    def call(self, path="", **kwargs):
        return self.plane.call(f"{self.ns}/f1{path}", **kwargs)

    def test_private_until_there_is_a_trigger(self):
        self.ws.config(FUNCTION % "")
        self.ws.apply()
        answer = self.call()
        self.assertEqual(404, answer.status)
        self.assertIn("http trigger", answer.text)
        invoke = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/invoke", "POST", {"httpMethod": "none"})
        self.assertEqual((200, "none"), (invoke.status, invoke.json()["method"]))
        self.assertEqual(401, self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/invoke", "POST", {}, token="wrong").status)

    def test_event_and_answer(self):
        self.ws.config(FUNCTION % "" + trigger(HTTP))
        self.ws.apply()
        self.assert_plan_empty()
        answer = self.call("/a/b?x=1&x=2&y=%20", method="POST", body="hello")
        self.assertEqual({"path": "/a/b", "method": "POST", "query": {"x": "2", "y": " "}, "body": "hello"}, answer.json())

    def test_methods_auth_path_and_longest_wins(self):
        self.ws.config(FUNCTION % "" + trigger('type = "http"\n http = { auth = "none", methods = ["GET"], path = "/open" }', "open")
                       + trigger('type = "http"\n http = { auth = "token", path = "/open/secret" }', "secret"))
        self.ws.apply()
        self.assert_plan_empty()
        self.assertEqual(200, self.call("/open").status)
        self.assertEqual(200, self.call("/open/x").status)
        refused = self.call("/open", method="POST")
        self.assertEqual(405, refused.status)
        self.assertIn("GET", refused.headers.get("allow", ""))
        self.assertEqual(404, self.call("/").status)
        self.assertEqual(404, self.call("/opener").status, "prefixes are whole segments")
        self.assertEqual(401, self.call("/open/secret").status)
        self.assertEqual(200, self.call("/open/secret", headers={"Authorization": f"Bearer {self.plane.token}"}).status)
        self.assertTrue(self.ws.state("sless_trigger.open")["url"].endswith(f"/fn/{self.ns}/f1/open"))

    def test_disable_one_alone_and_all(self):
        both_on = FUNCTION % "min_replicas = 1" + trigger(HTTP + "\n enabled = true", "a") + trigger(
            'type = "http"\n http = { auth = "none", path = "/b" }', "b")
        self.ws.config(both_on)
        self.ws.apply()
        self.ws.config(both_on.replace("enabled = true", "enabled = false"))
        self.assert_one_change("sless_trigger.a", "enabled")
        self.ws.apply()
        off = self.call()
        self.assertEqual(503, off.status)
        self.assertIn("disabled", off.text)
        self.assertEqual(200, self.call("/b").status)
        self.ws.config(both_on.replace("enabled = true", "enabled = false").replace('path = "/b" }', 'path = "/b" }\n enabled = false'))
        self.ws.apply()
        self.assert_plan_empty()
        for _ in range(100):
            if self.plane.object("functions", self.ns, "f1")["status"]["readyReplicas"] == 0:
                break
            time.sleep(0.1)
        else:
            self.fail("a function whose triggers are all disabled costs nothing")
        self.assertEqual(200, self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/invoke", "POST", {}).status)
        self.ws.config(both_on)
        self.ws.apply()
        self.assertEqual(200, self.call().status)
        self.assert_plan_empty()

    def test_each_attribute_alone_and_replace(self):
        self.ws.config(FUNCTION % "" + trigger(HTTP))
        self.ws.apply()
        for body, attributes in (
            ('type = "http"\n http = { auth = "token" }', {"http"}),
            ('type = "http"\n http = { auth = "token", methods = ["GET", "POST"] }', {"http"}),
            ('type = "http"\n http = { auth = "token", methods = ["GET", "POST"], path = "/p" }', {"http", "url"}),
            ('type = "http"\n http = { auth = "token", methods = ["GET", "POST"], path = "/p" }\n enabled = false', {"enabled"}),
        ):
            with self.subTest(body):
                self.ws.config(FUNCTION % "" + trigger(body))
                self.assert_one_change("sless_trigger.t", *attributes)
                self.ws.apply()
                self.assert_plan_empty()
        self.ws.config(FUNCTION % "" + trigger('type = "cron"\n cron = { schedule = "@daily" }'))
        self.assertIn("create", self.ws.plan()["sless_trigger.t"].actions)
        self.assertIn("delete", self.ws.plan()["sless_trigger.t"].actions)
        self.ws.apply()
        self.assert_plan_empty()

    def test_import_and_drift(self):
        config = FUNCTION % "" + trigger('type = "http"\n http = { auth = "token", methods = ["GET"], path = "/p" }')
        self.ws.config(config)
        self.ws.apply()
        self.ws.ok("state", "rm", "sless_trigger.t")
        self.ws.ok("import", "-input=false", "sless_trigger.t", f"{self.ns}/t")
        self.assert_plan_empty()
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/triggers/t", "PATCH", '{"spec":{"enabled":false}}', {"Content-Type": "application/merge-patch+json"})
        self.assertEqual(200, answer.status, answer)
        self.assertEqual({"enabled"}, self.ws.plan()["sless_trigger.t"].attributes)
        self.ws.apply()
        self.plane.api(f"/v1/namespaces/{self.ns}/triggers/t", "DELETE")
        for _ in range(100):
            if self.plane.object("triggers", self.ns, "t") is None:
                break
            time.sleep(0.1)
        self.assertEqual(["create"], self.ws.plan()["sless_trigger.t"].actions)
        self.ws.apply()
        self.assert_plan_empty()


class Cron(Case):
    def test_cron_trigger(self):
        self.ws.write("fn/handler.py", PY)
        full = 'type = "cron"\n cron = { schedule = "30 4 * * MON", timezone = "Europe/Berlin", payload = jsonencode({ a = 1 }), overlap = "queue", misfire = "once" }'
        self.ws.config(FUNCTION % "" + trigger(full))
        self.ws.apply()
        self.assert_plan_empty()
        runs = self.plane.object("triggers", self.ns, "t")["status"]["nextRuns"]
        self.assertGreaterEqual(len(runs), 1)
        self.assertIsNone(self.ws.state("sless_trigger.t")["url"])
        self.ws.ok("state", "rm", "sless_trigger.t")
        self.ws.ok("import", "-input=false", "sless_trigger.t", f"{self.ns}/t")
        self.assert_plan_empty()
        for change in ('"@hourly"', '"0 0 1 * *"'):
            self.ws.config(FUNCTION % "" + trigger(full.replace('"30 4 * * MON"', change)))
            self.assert_one_change("sless_trigger.t", "cron")
            self.ws.apply()
            self.assert_plan_empty()


if __name__ == "__main__":
    unittest.main()
