"""sless_trigger with a real terraform: http (auth, methods, path), cron, enabled, import, drift."""
import socket
import time
import unittest
import urllib.parse

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

    def until_replicas(self, count):
        for _ in range(100):
            found = self.plane.object("functions", self.ns, "f1")["status"]["readyReplicas"]
            if found == count:
                return
            time.sleep(0.1)
        self.fail(f"{found} replicas, not {count}")

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
        both_on = FUNCTION % "min_replicas = 2\n idle_timeout_sec = 1" + trigger(HTTP + "\n enabled = true", "a") + trigger(
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
        all_off = both_on.replace("enabled = true", "enabled = false").replace('path = "/b" }', 'path = "/b" }\n enabled = false')
        self.ws.config(all_off)
        self.ws.apply()
        self.assert_plan_empty()
        self.until_replicas(0)
        self.assertEqual(200, self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/invoke", "POST", {}).status)
        self.until_replicas(0)
        job = 'resource "sless_job" "j" {\n  name = "j"\n  function = sless_function.f.name\n  run_id = 1\n}\n'
        self.ws.config(all_off + job)
        self.ws.apply()
        self.assertEqual("Succeeded", self.ws.state("sless_job.j")["phase"])
        self.until_replicas(0)
        self.ws.config(all_off.replace("enabled = false", "enabled = true", 1) + job)
        self.ws.apply()
        self.until_replicas(2)  # without a call
        self.assertEqual((200, 503), (self.call().status, self.call("/b").status))
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


@both
class Together(Case):
    """Several triggers of one function, and a function that is not there."""

    def setUp(self):
        super().setUp()
        self.ws.write("fn/handler.py", PY)

    def until_status(self, status, path=""):
        for _ in range(100):
            answer = self.plane.call(f"{self.ns}/f1{path}")
            if answer.status == status:
                return answer
            time.sleep(0.1)
        self.fail(f"still {answer}")

    def test_two_triggers_on_one_path(self):
        # The one that wants a token wins; without it the other one serves. A trigger can be swapped without a gap.
        both_on = FUNCTION % "" + trigger(HTTP, "a") + trigger('type = "http"\n http = { auth = "token" }', "b")
        self.ws.config(both_on)
        self.ws.apply()
        self.assert_plan_empty()
        self.assertEqual(401, self.plane.call(f"{self.ns}/f1").status)
        self.assertEqual(200, self.plane.call(f"{self.ns}/f1", headers={"Authorization": f"Bearer {self.plane.token}"}).status)
        self.ws.config(FUNCTION % "" + trigger(HTTP, "a"))
        self.ws.apply()
        self.assertEqual(200, self.plane.call(f"{self.ns}/f1").status)
        self.assert_plan_empty()

    def test_methods_of_two_triggers_add_up(self):
        self.ws.config(FUNCTION % "" + trigger('type = "http"\n http = { methods = ["GET"] }', "a")
                       + trigger('type = "http"\n http = { methods = ["POST"], auth = "token" }', "b"))
        self.ws.apply()
        statuses = [self.plane.call(f"{self.ns}/f1", method=method).status for method in ("GET", "HEAD", "POST", "PUT")]
        self.assertEqual([200, 200, 401, 405], statuses)
        self.assertEqual("GET, HEAD, POST", self.plane.call(f"{self.ns}/f1", method="PUT").headers["allow"])

    def test_function_of_the_same_apply_without_a_reference(self):
        self.ws.config(FUNCTION % "" + trigger(HTTP).replace("sless_function.f.name", '"f1"'))
        self.ws.apply()
        self.assertEqual(200, self.plane.call(f"{self.ns}/f1").status)
        self.assert_plan_empty()

    def test_function_that_comes_later(self):
        later = trigger(HTTP).replace("sless_function.f.name", '"f1"')
        self.ws.config(later)
        self.assert_says(self.ws.apply_fails(), 'function "f1" does not exist', "sless_function.<label>.name", "main.tf line")
        self.ws.config(FUNCTION % "" + later)
        self.ws.apply()
        self.assertEqual(200, self.plane.call(f"{self.ns}/f1").status)
        self.assert_plan_empty()

    def test_function_that_goes_and_comes_back(self):
        self.ws.config(FUNCTION % "" + trigger(HTTP) + trigger('type = "cron"\n cron = { schedule = "@daily" }', "c"))
        self.ws.apply()
        self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1", "DELETE")
        self.until_status(404)
        for _ in range(50):
            phases = [self.plane.object("triggers", self.ns, name)["status"]["phase"] for name in ("t", "c")]
            if phases == ["Failed", "Failed"]:
                break
            time.sleep(0.1)
        self.assertEqual(["Failed", "Failed"], phases)
        done = self.ws.ok("plan", "-input=false")
        self.assert_says(done, "Trigger does not work", 'function "f1" does not exist')
        changes = self.ws.plan()
        self.assertEqual({"sless_function.f": ["create"]}, {address: change.actions for address, change in changes.items()})
        self.ws.apply()
        self.until_status(200)
        self.assert_plan_empty()

    def test_moved_to_another_function(self):
        self.ws.config(FUNCTION % "" + (FUNCTION % "").replace('"f" {', '"g" {').replace('"f1"', '"g1"') + trigger(HTTP))
        self.ws.apply()
        self.ws.config(FUNCTION % "" + (FUNCTION % "").replace('"f" {', '"g" {').replace('"f1"', '"g1"')
                       + trigger(HTTP).replace("sless_function.f.name", "sless_function.g.name"))
        self.assert_one_change("sless_trigger.t", "function", "url")
        self.ws.apply()
        self.assertEqual((404, 200), (self.plane.call(f"{self.ns}/f1").status, self.plane.call(f"{self.ns}/g1").status))
        self.assert_plan_empty()


@both
class PathGames(Case):
    """However a path is written: /v1 is not reached through /fn/, nor a function through /v1 or through another one, nor what a token protects without it."""

    def ask(self, target, method="GET", token=True):
        """One request with exactly this target. -> (status, body)"""
        place = urllib.parse.urlsplit(self.plane.url)
        with socket.create_connection((place.hostname, place.port), timeout=20) as peer:
            head = f"{method} {target} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n"
            if token:
                head += f"Authorization: Bearer {self.plane.token}\r\n"
            peer.sendall(head.encode("latin-1") + b"\r\n")
            answer = b""
            while piece := peer.recv(65536):
                answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode("utf-8", "replace")

    def setUp(self):
        super().setUp()
        self.ws.write("fn/handler.py", "import os\n\ndef handle(event):\n    return 'I am ' + os.environ['SLESS_FUNCTION'] + ' at ' + event['path']\n")
        two = FUNCTION % "" + (FUNCTION % "").replace('"f" {', '"g" {').replace('"f1"', '"g1"')  # g1 is private
        self.ws.config(two + trigger(HTTP) + trigger('type = "http"\n http = { auth = "token", path = "/secret" }', "s")
                       + trigger('type = "http"\n enabled = false\n http = { path = "/off" }', "o"))
        self.ws.apply()

    def test_no_way_out_of_the_function(self):
        fn = f"/fn/{self.ns}/f1"
        for target in (f"{fn}/../../../v1/info", f"{fn}/..%2f..%2f..%2fv1/info", f"{fn}/%2e%2e/%2e%2e/%2e%2e/v1/info", f"{fn}/.%2e/g1", f"{fn}/../g1",
                       f"{fn}/..;/g1", f"{fn}/%2E%2E%2Fg1", f"{fn}/..\\g1", f"{fn}/..%5cg1", f"{fn}/./x", f"{fn}%2f..%2fg1", f"{fn}/..", f"{fn}/%00",
                       f"{fn}/%zz", f"{fn}/%2", f"/fn/{self.ns}%2ff1", f"/fn/../v1/info", f"/v1/..{fn}", f"/v1%2f..{fn}", f"/fn/{self.ns}/../../v1/info",
                       f"/fn/{self.ns}//f1", f"//fn/{self.ns}/f1", f"/fn//{self.ns}/f1", f"/fn/{self.ns}/", f"/fn/{self.ns}", "/fn/", "/fn", "//v1/info", "/v1//info",
                       f"/FN/{self.ns}/f1", f"/fn/{self.ns.upper()}/f1", f"/fn/{self.ns}/F1", "/%76%31/%2e%2e/v1/info", "*", "v1/info", "\\v1\\info",
                       f"/v1/namespaces/{self.ns}/functions/f1/../g1", f"/v1/namespaces/{self.ns}%2ffunctions/f1", f"/v1/fn/{self.ns}/f1"):
            with self.subTest(target):
                status, body = self.ask(target)
                self.assertIn(status, (400, 404), body)
                self.assertNotIn("I am", body)
        # Written oddly, and still that function and no other.
        for target in (f"{fn}//v1/info", f"{fn}/v1/info", f"{fn}/%76%31/info", f"{fn}/a%2fb", f"{fn}/;/g1", f"{fn}/...", f"{fn}?/../../v1/info"):
            with self.subTest(target):
                status, body = self.ask(target)
                self.assertEqual(200, status, body)
                self.assertIn("I am f1", body)

    def test_a_target_with_a_host_is_no_way_out_either(self):
        for target in (f"{self.plane.url}/fn/{self.ns}/f1/../g1", f"http://other.example/fn/{self.ns}/g1"):
            status, body = self.ask(target)
            self.assertIn(status, (400, 404, 421), body)
            self.assertNotIn("I am", body)

    def test_what_wants_a_token_or_is_disabled_stays_so(self):
        fn = f"/fn/{self.ns}/f1"
        for path in ("/secret", "/secret/", "/secret/x", "//secret", "/%73ecret", "/secret%2f", "/secret%2fx", "///secret//x", "/%73%65%63%72%65%74", "/secret?x", "/secret/%20"):
            with self.subTest(path):
                status, body = self.ask(fn + path, token=False)
                self.assertEqual(401, status, body)
                self.assertEqual(503, self.ask(fn + path.replace("secret", "off").replace("%73ecret", "o%66f").replace("%73%65%63%72%65%74", "%6f%66%66"))[0])
        for path in ("/secretive", "/Secret", "/secret;x", "/x/secret"):
            with self.subTest(path):
                status, body = self.ask(fn + path, token=False)
                self.assertEqual(200, status, body)
                self.assertIn(urllib.parse.unquote(path), body)


@both
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
        for name, old, new in (
            ("schedule", "30 4 * * MON", "@hourly"),
            ("schedule", "@hourly", "0 0 1 * *"),
            ("timezone", "Europe/Berlin", "Asia/Kathmandu"),
            ("payload", "a = 1", "a = 2"),
            ("overlap", "queue", "allow"),
            ("misfire", "once", "all"),
        ):
            with self.subTest(new):
                full = full.replace(old, new)
                before = self.plane.object("triggers", self.ns, "t")["spec"]["cron"]
                self.ws.config(FUNCTION % "" + trigger(full))
                self.assert_one_change("sless_trigger.t", "cron")
                self.ws.apply()
                after = self.plane.object("triggers", self.ns, "t")["spec"]["cron"]
                self.assertEqual({name}, {key for key in before | after if before.get(key) != after.get(key)})
                self.assert_plan_empty()


if __name__ == "__main__":
    unittest.main()
