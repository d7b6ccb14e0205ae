"""The examples as they are committed: quickstart, the two modules with their own `terraform test` files, the seed."""
import json
import os
import shutil
import subprocess
import unittest

from tests.acceptance.harness.case import Case, both
from tests.acceptance.harness.control_plane import ROOT, request


@both
class Examples(Case):
    def copy(self, name):
        shutil.copytree(os.path.join(ROOT, "examples", name), self.ws.work, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns(".terraform*", "terraform.tfstate*", "dist"))

    def test_quickstart(self):
        self.copy("quickstart")
        self.ws.apply()
        self.assert_plan_empty()
        outputs = self.ws.outputs()
        for key in ("python_url", "node_url"):
            answer = request(outputs[key] + "?name=you")
            self.assertEqual(200, answer.status, answer)
            self.assertIn("you", answer.text)
        self.assertIn("job", json.dumps(outputs["job_result"]))
        self.ws.destroy()

    def test_quickstart_zip_is_the_folder(self):
        self.copy("quickstart")
        self.ws.apply()
        before = self.ws.state("sless_function.node")["source_hash"]
        with open(self.ws.path("main.tf"), encoding="utf-8") as file:
            text = file.read()
        self.ws.write("main.tf", text.replace('source_zip = "${path.module}/hello_node.zip"', 'source_dir = "${path.module}/hello_node"'))
        changes = self.ws.plan()
        self.assertEqual({"source_dir", "source_zip"}, changes["sless_function.node"].attributes)
        self.ws.apply()
        self.assertEqual(before, self.ws.state("sless_function.node")["source_hash"])

    def test_quickstart_whose_job_does_not_run(self):
        self.copy("quickstart")
        with open(self.ws.path("main.tf"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("run_id     = 1", text)
        self.ws.write("main.tf", text.replace("run_id     = 1", "run_id     = 0"))
        self.ws.apply()
        self.assert_plan_empty()
        self.ws.destroy()

    def test_the_examples_of_the_registry_pages_are_one_configuration(self):
        self.copy("provider")
        for name in os.listdir(os.path.join(ROOT, "examples", "resources")):
            self.copy("resources/" + name)
            os.rename(self.ws.path("resource.tf"), self.ws.path(name + ".tf"))
        with open(self.ws.path("provider.tf"), encoding="utf-8") as file:
            text = file.read()
        self.ws.write("provider.tf", text.replace("https://sless.example.com", self.plane.url).replace('"shop"', f'"{self.ns}"'))
        self.ws.write("src/handler.py", "def handle(event):\n    return event\n")
        self.ws.apply()
        self.assert_plan_empty()
        self.assertEqual({"action": "migrate", "to": 7}, self.ws.outputs()["migrated"])
        self.ws.destroy()

    def module(self, name):
        self.copy("modules/" + name)
        self.ws.init()
        for _ in range(2):  # people run tests again, on the same server
            done = self.ws.run("test", timeout=300)
            self.assertEqual(0, done.code, done)
            self.assertIn("Success!", done.out)
        spaces = [one["name"] for one in self.plane.api("/v1/namespaces?limit=1000").json()["items"]]
        left = [f"{kind} {ns}/{item['metadata']['name']}" for ns in spaces if ns.startswith(name.replace("_", "-") + "-test")
                for kind in ("functions", "triggers", "jobs") for item in self.plane.api(f"/v1/namespaces/{ns}/{kind}").json()["items"]]
        self.assertEqual([], left)

    def test_module_http_api(self):
        self.module("http_api")

    def test_module_scheduled_job(self):
        self.module("scheduled_job")

    def test_seed(self):
        self.copy("seed")
        make = lambda: subprocess.run(["make", "-s"], cwd=self.ws.work, check=True, timeout=60, stdout=subprocess.DEVNULL)  # noqa: E731
        make()
        self.ws.apply()
        self.assert_plan_empty()
        outputs = self.ws.outputs()
        self.assertEqual("Succeeded", outputs["phase"])
        self.assertEqual(200, request(outputs["url"]).status)
        self.ws.apply("-var", "enabled=false")
        self.assertEqual(503, request(outputs["url"]).status)
        self.ws.apply("-var", "enabled=true", "-var", "run_id=2")
        self.assertEqual(200, request(outputs["url"]).status)
        self.assertEqual("Succeeded", self.ws.outputs()["phase"])


if __name__ == "__main__":
    unittest.main()
