"""sless_function with a real terraform: create, second plan empty, each attribute alone, import, drift, destroy, failures."""
import os
import shutil
import textwrap
import time
import unittest

from tests.acceptance.harness.case import Case, both

PY = 'import os\n\ndef handle(event, context):\n    return {"answer": os.environ.get("WORD", "one"), "event": event}\n'
HTTP = '''
resource "sless_trigger" "t" {
  name     = sless_function.f.name
  function = sless_function.f.name
  type     = "http"
  http     = { auth = "none" }
}
'''


def function(body="", name="f1", source='source_dir = "fn"'):
    return textwrap.dedent(f'''
        resource "sless_function" "f" {{
          name    = "{name}"
          runtime = "python3.11"
          {source}
          {body}
        }}
    ''')


@both
class Life(Case):
    def test_create_call_update_destroy(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function() + HTTP + 'output "url" { value = sless_trigger.t.url }\n')
        changes = self.ws.plan()
        self.assertEqual(["create"], changes["sless_function.f"].actions)
        planned = changes["sless_function.f"]
        self.assertTrue(planned.after["source_hash"].startswith("sha256:"), "the hash is known in the plan")
        self.assertEqual(f"{self.ns}/f1", planned.after["id"])
        self.assertEqual(f"{self.plane.url}/fn/{self.ns}/f1", changes["sless_trigger.t"].after["url"], "the URL is known in the plan")

        self.ws.apply()
        state = self.ws.state("sless_function.f")
        self.assertEqual("Ready", state["phase"])
        self.assertEqual(1, state["revision"])
        self.assertEqual(planned.after["source_hash"], state["source_hash"])
        self.assertEqual(256, state["memory_mb"])
        self.assertEqual("handler.handle", state["entrypoint"])
        self.assert_plan_empty()
        answer = self.plane.call(f"{self.ns}/f1")
        self.assertEqual(200, answer.status, answer)
        self.assertEqual("one", answer.json()["answer"])
        self.assertEqual("1", answer.headers["x-sless-revision"])

        self.ws.write("fn/handler.py", PY.replace('"one"', '"two"'))
        self.assert_one_change("sless_function.f", "source_hash", "revision", "last_built_at")
        self.ws.apply()
        self.assertEqual("two", self.plane.call(f"{self.ns}/f1").json()["answer"])
        self.assertEqual(2, self.ws.state("sless_function.f")["revision"])
        self.assert_plan_empty()

        self.ws.destroy()
        self.assertEqual(404, self.plane.call(f"{self.ns}/f1").status)
        self.assertIsNone(self.plane.object("functions", self.ns, "f1"))
        self.ws.destroy()


@both
class CreateBeforeDestroy(Case):
    def test_a_replacement_under_the_same_name_stays(self):
        first = "lifecycle { create_before_destroy = true }"
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function(first) + HTTP.replace("type     =", first + "\n  type     =") + '''
            resource "sless_job" "j" {
              name     = "j1"
              function = sless_function.f.name
              run_id   = 1
              lifecycle { create_before_destroy = true }
            }
        ''')
        self.ws.apply()
        done = self.ws.apply("-replace=sless_function.f", "-replace=sless_trigger.t", "-replace=sless_job.j")
        self.assert_says(done, "The function", "was taken over by another create since", "It stays")
        self.assertEqual("one", self.plane.call(f"{self.ns}/f1").json()["answer"])
        self.assertEqual("Succeeded", self.plane.object("jobs", self.ns, "j1")["status"]["phase"])
        self.assert_plan_empty()
        self.ws.ok("taint", "sless_job.j")
        self.ws.apply()
        self.assertEqual(1, len(self.plane.api(f"/v1/namespaces/{self.ns}/jobs/j1/runs").json()["items"]), "nothing ran again")
        self.assert_plan_empty()
        self.ws.destroy()
        for kind, name in (("functions", "f1"), ("triggers", "f1"), ("jobs", "j1")):
            self.assertIsNone(self.plane.object(kind, self.ns, name))


@both
class Attributes(Case):
    def test_another_label_without_moved_loses_nothing(self):
        """Terraform deletes under the old label and creates under the new one, at once and in any order."""
        self.ws.write("fn/handler.py", PY)
        names = {f"{self.ns}/f{i}" for i in range(8)}
        for label in ("a", "b", "c"):
            self.ws.config(f'''
                resource "sless_function" "{label}" {{
                  count      = 8
                  name       = "f${{count.index}}"
                  runtime    = "python3.11"
                  source_dir = "fn"
                }}
            ''')
            done = self.ws.run("apply", "-auto-approve", "-input=false", "-parallelism=20")
            there = self.plane.api(f"/v1/namespaces/{self.ns}/functions").json()["items"]
            # A create may be refused because of the delete beside it; then it says so, and nothing is green.
            if done.code == 0:
                self.assertEqual(names, {f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in there}, done)
            self.ws.apply()
            self.assert_plan_empty()

    def test_one_name_twice_is_never_green(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.write("other/handler.py", PY.replace("one", "other"))
        self.ws.config(function() + function(source='source_dir = "other"').replace('"f" {', '"g" {'))
        done = self.ws.apply_fails()
        self.assert_says(done, "f1")
        self.assertTrue("taken over by another create" in done.flat or "already exists" in done.flat, done)
        for _ in range(2):
            self.assert_says(self.ws.apply_fails(), "f1", "already exists")

    def test_an_imported_one_under_another_label_stays(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function() + HTTP)
        self.ws.apply()
        self.ws.run("state", "rm", "sless_function.f", "sless_trigger.t")
        self.ws.run("import", "-input=false", "sless_function.f", f"{self.ns}/f1")
        self.ws.run("import", "-input=false", "sless_trigger.t", f"{self.ns}/f1")
        self.assert_plan_empty()
        # No `moved`: created under the new labels, deleted under the old ones.
        self.ws.config((function() + HTTP).replace('"f" {', '"g" {').replace('"t" {', '"u" {').replace("sless_function.f.", "sless_function.g."))
        self.ws.apply()
        self.assertEqual(200, self.plane.call(f"{self.ns}/f1").status)
        self.assert_plan_empty()

    def test_a_namespace_that_is_known_after_apply(self):
        self.ws.write("fn/handler.py", PY)
        body = 'namespace = terraform_data.ns.output'
        text = 'resource "terraform_data" "ns" { input = "%s" }\n'
        self.ws.config(text % self.ns + function(body))
        self.assertNotIn("id", self.ws.plan()["sless_function.f"].after)
        self.ws.apply()
        self.assertEqual(f"{self.ns}/f1", self.ws.state("sless_function.f")["id"])
        self.assert_plan_empty()
        self.ws.config(text % (self.ns + "-b") + function(body))
        self.ws.apply()
        self.assertEqual(f"{self.ns}-b/f1", self.ws.state("sless_function.f")["id"])
        self.assert_plan_empty()

    def test_each_attribute_alone(self):
        self.ws.write("fn/handler.py", PY + "\n\ndef other(event, context):\n    return 1\n")
        self.ws.write("fn/handler.js", "exports.other = async () => 1;\n")
        self.ws.config(function())
        self.ws.apply()
        lines, revision = {}, 1
        for line, switches in (  # an argument that changes; does a new revision serve?
            ('environment = { WORD = "x" }', True),
            ('environment = { WORD = "y" }', True),
            ("environment = null", True),
            ('labels = { team = "a" }', False),
            ('labels = { team = "b" }', False),
            ("labels = null", False),
            ("memory_mb = 300", True),
            ("timeout_sec = 30", True),
            ("concurrency = 4", True),
            ("max_replicas = 3", False),
            ("min_replicas = 1", False),
            ("idle_timeout_sec = 60", False),
            ("build_timeout_sec = 60", False),
            ('timeouts { create = "9m" }', False),
            ('timeouts { delete = "9m" }', False),
            ('code_hash = "v1"', True),
            ('code_hash = "v2"', True),
            ('code_hash = ""', True),
            ("code_hash = null", True),
            ('entrypoint = "handler.other"', True),
            ('runtime = "nodejs20"', True),
        ):
            with self.subTest(line):
                name = line.split()[0]
                lines[name] = line
                self.ws.write("override.tf", 'resource "sless_function" "f" {\n%s\n}\n' % "\n".join(lines.values()))
                changes = self.ws.plan()
                self.assertEqual({"sless_function.f": ["update"]}, {address: change.actions for address, change in changes.items()})
                # A change of code_hash counts as a change of code: the time of the build may move as well.
                self.assertEqual({name} | ({"revision"} if switches else set()), changes["sless_function.f"].attributes - {"last_built_at"})
                self.ws.apply()
                revision += switches
                self.assertEqual(revision, self.ws.state("sless_function.f")["revision"])
                self.assert_plan_empty()

    def test_name_and_namespace_replace(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        self.ws.config(function(name="f2"))
        self.assertEqual(["delete", "create"], self.ws.plan()["sless_function.f"].actions)
        self.ws.apply()
        self.assertIsNone(self.plane.object("functions", self.ns, "f1"))
        self.assertIsNotNone(self.plane.object("functions", self.ns, "f2"))
        self.ws.config(function(name="f2", body=f'namespace = "{self.ns}-b"'))
        self.ws.apply()
        self.assertIsNotNone(self.plane.object("functions", self.ns + "-b", "f2"))

    def test_replicas_zero_switches_off_and_on(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function("replicas = 0") + HTTP)
        self.ws.apply()
        self.assertEqual("Ready", self.ws.state("sless_function.f")["phase"])
        answer = self.plane.call(f"{self.ns}/f1")
        self.assertEqual(503, answer.status)
        self.assertIn("replicas", answer.text)
        self.ws.config(function("replicas = 2") + HTTP)
        self.ws.apply()
        self.assert_plan_empty()
        self.assertEqual(200, self.plane.call(f"{self.ns}/f1").status)
        self.ws.config(function() + HTTP)
        self.ws.apply()
        self.assert_plan_empty()


@both
class Sources(Case):
    def test_inline_code_python_and_node(self):
        self.ws.config('''
            resource "sless_function" "f" {
              name        = "inline"
              runtime     = "python3.11"
              source_code = "def handle(event):\\n    return event['a'] + 1\\n"
            }
            resource "sless_function" "n" {
              name        = "inline-node"
              runtime     = "nodejs20"
              source_code = "exports.handle = async (event) => event.a + 2"
            }
            resource "sless_job" "f" {
              name       = "f"
              function   = sless_function.f.name
              event_json = jsonencode({ a = 1 })
              run_id     = 1
            }
            resource "sless_job" "n" {
              name       = "n"
              function   = sless_function.n.name
              event_json = jsonencode({ a = 1 })
              run_id     = 1
            }
        ''')
        self.ws.apply()
        self.assertEqual("2", self.ws.state("sless_job.f")["result_json"])
        self.assertEqual("3", self.ws.state("sless_job.n")["result_json"])
        self.assert_plan_empty()

    def test_other_checkout_is_an_update_that_touches_nothing(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.write("copy/of/fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        before = self.ws.state("sless_function.f")
        self.ws.config(function(source='source_dir = "copy/of/fn"'))
        self.assert_one_change("sless_function.f", "source_dir")
        self.ws.apply()
        after = self.ws.state("sless_function.f")
        self.assertEqual((before["revision"], before["last_built_at"]), (after["revision"], after["last_built_at"]))
        self.assert_plan_empty()

    def test_source_that_is_unknown_at_plan(self):
        self.ws.config('''
            resource "terraform_data" "text" { input = "def handle(event):\\n    return 7\\n" }
            resource "sless_function" "f" {
              name        = "later"
              runtime     = "python3.11"
              source_code = terraform_data.text.output
            }
        ''')
        self.ws.apply()
        self.assertTrue(self.ws.state("sless_function.f")["source_hash"].startswith("sha256:"))
        self.assert_plan_empty()


@both
class Import(Case):
    def import_is_quiet(self, config, address, identifier, ignore=()):
        self.ws.config(config)
        self.ws.apply()
        before = self.ws.state(address)
        self.ws.ok("state", "rm", address)
        self.ws.ok("import", "-input=false", address, identifier)
        self.assert_plan_empty()
        after = self.ws.state(address)
        for name in before:
            if name not in ignore:
                self.assertEqual(before[name], after[name], name)

    def test_every_source(self):
        self.ws.write("fn/handler.py", PY)
        full = ('environment = { A = "b" }\n labels = { l = "m" }\n memory_mb = 200\n timeout_sec = 20\n concurrency = 2\n'
                ' min_replicas = 1\n max_replicas = 2\n idle_timeout_sec = 100\n build_timeout_sec = 90\n code_hash = "abc"')
        self.import_is_quiet(function(full), "sless_function.f", f"{self.ns}/f1")
        self.import_is_quiet(function("replicas = 1", name="f2"), "sless_function.f", f"{self.ns}/f2")
        self.import_is_quiet(function(name="f3", source='source_code = "def handle(event):\\n    return 1\\n"'), "sless_function.f", f"{self.ns}/f3")
        shutil.make_archive(self.ws.path("fn"), "zip", self.ws.path("fn"))
        self.import_is_quiet(function(name="f4", source='source_zip = "fn.zip"'), "sless_function.f", f"{self.ns}/f4")

    def test_import_block(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        self.ws.ok("state", "rm", "sless_function.f")
        self.ws.config(function() + f'import {{\n  to = sless_function.f\n  id = "{self.ns}/f1"\n}}\n')
        self.ws.apply()
        self.assert_plan_empty()
        self.assertEqual(1, self.ws.state("sless_function.f")["revision"])

    def test_bad_identifiers(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.init()
        for bad, text in (("f1", "namespace/name"), ("a/b/c", "namespace/name"), (f"{self.ns}/absent", "non-existent")):
            done = self.ws.run("import", "-input=false", "sless_function.f", bad)
            self.assertNotEqual(0, done.code)
            self.assert_says(done, text)


@both
class Drift(Case):
    def test_edit_by_curl_shows_and_is_undone(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function('environment = { WORD = "mine" }') + HTTP)
        self.ws.apply()
        body = self.plane.object("functions", self.ns, "f1")
        body["spec"]["environment"] = {"WORD": "theirs"}
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1", "PUT", {"metadata": {}, "spec": body["spec"]})
        self.assertIn(answer.status, (200, 201), answer)
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1?wait=ready&timeout=30&generation={answer.json()['metadata']['generation']}")
        self.assertEqual("Ready", answer.json()["status"]["phase"])
        self.assertEqual("theirs", self.plane.call(f"{self.ns}/f1").json()["answer"])
        changes = self.ws.plan()
        self.assertIn("environment", changes["sless_function.f"].attributes)
        self.ws.apply()
        self.assertEqual("mine", self.plane.call(f"{self.ns}/f1").json()["answer"])
        self.assert_plan_empty()

    def test_deleted_out_of_band_is_created_again(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1?wait=gone&timeout=30", "DELETE")
        self.assertIn(answer.status, (200, 202, 204), answer)
        for _ in range(100):
            if self.plane.object("functions", self.ns, "f1") is None:
                break
            time.sleep(0.1)
        self.assertEqual(["create"], self.ws.plan()["sless_function.f"].actions)
        self.ws.apply()
        self.assert_plan_empty()


@both
class Failures(Case):
    def test_import_error_of_the_handler(self):
        self.ws.write("fn/handler.py", "import no_such_module_x\n\ndef handle(event):\n    return 1\n")
        self.ws.config(function())
        done = self.ws.apply_fails()
        self.assert_says(done, "no_such_module_x", "handler.py:1", "phase Failed", "requirements.txt")
        self.assertEqual(2, done.flat.count("No module named"), "the error and the traceback, no further line")
        # The function is kept in state (tainted), and a repaired source needs no hand work.
        self.ws.write("fn/handler.py", PY)
        self.ws.apply()
        self.assert_plan_empty()

    def test_a_deadline_shows_the_last_lines(self):
        self.ws.write("fn/handler.py", "import time\nfor n in range(50):\n    print('line', n)\ntime.sleep(60)\n\ndef handle(event):\n    return 1\n")
        self.ws.config(function('timeouts { create = "4s" }'))
        done = self.ws.apply_fails()
        self.assert_says(done, "its phase is Deploying", "Last log lines: line 20 line 21", "line 49", "The server goes on with it")
        self.assertNotIn("line 19 ", done.flat)
        # The next revision says nothing: what the one before it said is not its own.
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        self.ws.write("fn/handler.py", "import os, time\nprint(os.environ['SAYS'], flush=True) if os.environ['SAYS'] else None\n"
                      "time.sleep(60)\n\ndef handle(event):\n    return 1\n")
        for says in ("something", ""):
            self.ws.config(function('timeouts { update = "4s" }\n  environment = { SAYS = "%s" }' % says))
            done = self.ws.apply_fails()
            self.assertEqual(bool(says), "something" in done.flat.partition("Last log lines")[2], done.flat)

    def test_syntax_error_names_the_line(self):
        self.ws.write("fn/handler.py", "x = 1\n\ndef handle(event):\n    return (1\n")
        self.ws.config(function())
        self.assert_says(self.ws.apply_fails(), "handler.py:4", "SyntaxError")

    def test_failed_update_leaves_the_old_one_serving_and_shows_as_a_diff(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function() + HTTP)
        self.ws.apply()
        good = self.ws.state("sless_function.f")["source_hash"]
        self.ws.write("fn/handler.py", "raise RuntimeError('broken at start')\n\ndef handle(event):\n    return 1\n")
        done = self.ws.apply_fails()
        self.assert_says(done, "broken at start", "handler.py:1")
        self.assertEqual("one", self.plane.call(f"{self.ns}/f1").json()["answer"], "the old revision serves on")
        self.assertEqual(good, self.ws.state("sless_function.f")["source_hash"], "state holds what serves")
        self.assertIn("source_hash", self.ws.plan()["sless_function.f"].attributes)
        failed = self.plane.object("functions", self.ns, "f1")
        self.assert_says(self.ws.apply_fails(), "broken at start", "Revision 1 serves on")
        again = self.plane.object("functions", self.ns, "f1")
        self.assertEqual(failed["metadata"]["generation"], again["metadata"]["generation"], "the same wish, tried once more")
        self.assertNotEqual(failed["status"]["observedRetry"], again["status"]["observedRetry"])
        self.ws.write("fn/handler.py", PY.replace("one", "three"))
        self.ws.apply()
        self.assertEqual("three", self.plane.call(f"{self.ns}/f1").json()["answer"])
        self.assert_plan_empty()

    def test_failed_update_taken_back_is_quiet(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        self.ws.write("fn/handler.py", "1/0\n\ndef handle(event):\n    return 1\n")
        self.ws.apply_fails()
        self.ws.write("fn/handler.py", PY)
        self.ws.apply()
        self.assertEqual("Ready", self.ws.state("sless_function.f")["phase"])
        self.assert_plan_empty()

    def test_broken_code_that_another_writer_replaces_meanwhile_is_not_green(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        good = self.plane.object("functions", self.ns, "f1")
        self.ws.write("fn/handler.py", "import time\ntime.sleep(3)\nraise RuntimeError('broken at start')\n\ndef handle(event):\n    return 1\n")
        process = self.ws.start("apply", "-auto-approve", "-input=false", "-no-color")
        end = time.monotonic() + 30
        while self.plane.object("functions", self.ns, "f1")["metadata"]["generation"] == good["metadata"]["generation"]:
            self.assertLess(time.monotonic(), end, "the apply has written")
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        wish = {"spec": {"source": good["spec"]["source"], "environment": {"WORD": "theirs"}}}
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1", "PATCH", wish, {"Content-Type": "application/merge-patch+json"})
        self.assertEqual(200, answer.status, answer)
        text = " ".join("".join(process.communicate(timeout=60)).replace("│", " ").split())
        self.assertNotEqual(0, process.returncode, text)
        self.assertIn("changed while this apply waited for it", text)
        self.assertIn("plan again to see what differs", text)
        state = self.ws.state("sless_function.f")
        self.assertEqual((good["spec"]["source"]["hash"], {"WORD": "theirs"}), (state["source_hash"], state["environment"]), "what the server has")
        self.assertEqual({"source_hash", "environment"}, self.ws.plan()["sless_function.f"].attributes & {"source_hash", "environment"})
        self.ws.write("fn/handler.py", PY)
        self.ws.apply()
        self.assert_plan_empty()

    def test_exists_and_is_not_ours(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function())
        self.ws.apply()
        self.ws.ok("state", "rm", "sless_function.f")
        self.ws.config(function('memory_mb = 300'))
        self.assert_says(self.ws.apply_fails(), "already exists", "terraform import")

    def test_missing_requirement(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.write("fn/requirements.txt", "no-such-package-sless-xyz==9.9.9\n")
        self.ws.config(function())
        done = self.ws.apply_fails(timeout=300)
        self.assert_says(done, "no-such-package-sless-xyz", "requirements.txt")


@both
class Dependencies(Case):
    def test_pip_and_npm_layers_are_shared_and_cached(self):
        self.ws.write("py/handler.py", "import six\n\ndef handle(event):\n    return six.__version__\n")
        self.ws.write("py/requirements.txt", "six==1.16.0\n")
        self.ws.write("js/handler.js", "const isNumber = require('is-number');\nexports.handle = async () => isNumber(5);\n")
        self.ws.write("js/package.json", '{"name":"x","version":"1.0.0","dependencies":{"is-number":"7.0.0"}}')
        self.ws.config('''
            resource "sless_function" "py" {
              name       = "py"
              runtime    = "python3.11"
              source_dir = "py"
            }
            resource "sless_function" "js" {
              name       = "js"
              runtime    = "nodejs20"
              source_dir = "js"
            }
            resource "sless_job" "py" {
              name     = "py"
              function = sless_function.py.name
              run_id   = 1
            }
            resource "sless_job" "js" {
              name     = "js"
              function = sless_function.js.name
              run_id   = 1
            }
        ''')
        self.ws.apply(timeout=300)
        self.assertEqual('"1.16.0"', self.ws.state("sless_job.py")["result_json"])
        self.assertEqual("true", self.ws.state("sless_job.js")["result_json"])
        # A change of code alone installs nothing.
        self.ws.write("py/handler.py", "import six\n\ndef handle(event):\n    return 'v2 ' + six.__version__\n")
        start = time.monotonic()
        self.ws.apply()
        self.assertLess(time.monotonic() - start, 8)
        self.assert_plan_empty()


class Permissions(Case):
    def test_the_data_directory_is_private(self):
        self.ws.write("fn/handler.py", PY)
        self.ws.config(function('environment = { SECRET = "hush-hush-value" }'))
        self.ws.apply()
        for folder, _, files in os.walk(self.plane.data):
            if "/layers/" in folder + "/":
                continue
            for name in files:
                mode = os.lstat(os.path.join(folder, name)).st_mode
                self.assertEqual(0, mode & 0o077, os.path.join(folder, name))
        self.assertNotIn("hush-hush-value", self.plane.log_tail(100000))


if __name__ == "__main__":
    unittest.main()
