"""The provider's own configuration, and a few wrong configurations end to end (the long table is a unit test of resources)."""
import time
import unittest

from tests.acceptance.harness.case import Case, both

FUNCTION = 'resource "sless_function" "f" {\n  name = "f1"\n  runtime = "python3.11"\n  source_code = "def handle(event):\\n    return 1\\n"\n%s}\n'


@both
class Provider(Case):
    def test_wrong_token_and_unreachable_server_fail_at_plan(self):
        self.ws.config(FUNCTION % "")
        self.ws.init()
        start = time.monotonic()
        self.ws.env["SLESS_TOKEN"] = "sless_nonsense_wrong"
        done = self.ws.plan_fails()
        self.assert_says(done, "SLESS_TOKEN", self.plane.url)
        self.assertNotIn("sless_nonsense_wrong", done.text)
        self.ws.env["SLESS_TOKEN"] = self.plane.token
        self.ws.env["SLESS_ENDPOINT"] = "http://127.0.0.1:9"
        self.assert_says(self.ws.plan_fails(), "SLESS_ENDPOINT", "127.0.0.1:9", "refused")
        self.assertLess(time.monotonic() - start, 20)
        del self.ws.env["SLESS_ENDPOINT"]
        self.assert_says(self.ws.plan_fails(), "endpoint", "SLESS_ENDPOINT")
        self.ws.env["SLESS_ENDPOINT"] = self.plane.url
        del self.ws.env["SLESS_TOKEN"]
        self.assert_says(self.ws.plan_fails(), "token", "SLESS_TOKEN")

    def test_configuration_in_hcl_wins_and_the_token_is_in_no_output(self):
        token = self.ws.env.pop("SLESS_TOKEN")
        self.ws.env["SLESS_ENDPOINT"] = "http://127.0.0.1:9"
        self.ws.config(f'provider "sless" {{\n  endpoint = "{self.plane.url}"\n  token = "{token}"\n  namespace = "{self.ns}-x"\n}}\n' + FUNCTION % "")
        done = self.ws.apply(env={"TF_LOG": "trace"})
        self.assertIsNotNone(self.plane.object("functions", self.ns + "-x", "f1"))
        self.assertNotIn(token, done.out)
        self.assertNotIn(token, "\n".join(line for line in done.err.splitlines() if "provider.terraform-provider-sless" in line))
        self.assert_plan_empty()

    def test_endpoint_unknown_at_plan_never_falls_back(self):
        self.ws.env["SLESS_ENDPOINT"] = "http://127.0.0.1:9"
        self.ws.config(f'resource "terraform_data" "e" {{\n  input = "{self.plane.url}"\n}}\nprovider "sless" {{\n  endpoint = terraform_data.e.output\n}}\n' + FUNCTION % "")
        self.ws.apply()
        self.assertIsNotNone(self.plane.object("functions", self.ns, "f1"))

    def test_validate_needs_no_server(self):
        self.ws.env.pop("SLESS_ENDPOINT")
        self.ws.env.pop("SLESS_TOKEN")
        self.ws.config(FUNCTION % "")
        self.ws.init()
        self.ws.ok("validate")

    def test_wrong_configurations(self):
        rows = [
            ("memory_mb = 1\n", "memory_mb"),
            ("replicas = 1\n min_replicas = 1\n", "replicas"),
            ('environment = { "1A" = "x" }\n', "environment"),
            ('environment = { SLESS_X = "x" }\n', "SLESS_"),
            ('source_dir = "."\n', "source_code"),
            ("timeout_sec = 0\n", "timeout_sec"),
            ("min_replicas = 4\n max_replicas = 2\n", "max_replicas"),
        ]
        for body, text in rows:
            with self.subTest(body):
                self.ws.config(FUNCTION % body)
                self.assert_says(self.ws.plan_fails(), text, "main.tf")


if __name__ == "__main__":
    unittest.main()
