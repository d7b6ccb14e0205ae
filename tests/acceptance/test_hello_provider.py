"""The example provider of the framework under a real terraform, and what every program of ours must be as a plugin."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from tests.acceptance.harness import processes
from tests.acceptance.harness.control_plane import BIN, ROOT
from tests.acceptance.harness.terraform_cli import binaries

HELLO = os.path.join(BIN, "terraform-provider-hello")
EXAMPLE = os.path.join(ROOT, "examples", "framework", "hello_provider", "example")


class HelloProvider(unittest.TestCase):
    def setUp(self):
        self.assertTrue(os.path.exists(HELLO), f"{HELLO} is not built (target terraform-provider-hello)")
        self.dir = tempfile.mkdtemp(prefix="hello-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.work = os.path.join(self.dir, "work")
        shutil.copytree(EXAMPLE, self.work)
        self.note = os.path.join(self.work, "note.txt")
        plugins = os.path.join(self.dir, "plugins")
        os.mkdir(plugins)
        os.symlink(HELLO, os.path.join(plugins, "terraform-provider-hello"))
        self.temp = os.path.join(self.dir, "tmp")
        os.mkdir(self.temp)
        rc = os.path.join(self.dir, "cli.tfrc")
        with open(rc, "w", encoding="utf-8") as file:
            file.write('provider_installation {\n  dev_overrides {\n    "example/hello" = "%s"\n  }\n  direct {}\n}\n' % plugins)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
        self.env.update(TF_CLI_CONFIG_FILE=rc, CHECKPOINT_DISABLE="1", TF_IN_AUTOMATION="1", NO_COLOR="1", TMPDIR=self.temp)

    def tf(self, *args, code=0, **env):
        done = subprocess.run([binaries()[0], *args], cwd=self.work, env={**self.env, **env}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def plan_is_empty(self):
        self.tf("plan", "-detailed-exitcode", "-input=false")  # 0: no changes, 2: changes

    def nothing_left(self):
        """The provider's processes removed their sockets."""
        self.assertEqual([], [name for name in os.listdir(self.temp) if name.startswith("tfp-")])

    def text(self):
        with open(self.note, encoding="utf-8") as file:
            return file.read()

    def test_life_of_a_file(self):
        self.tf("apply", "-auto-approve", "-input=false")
        self.assertEqual("Hello, world!", self.text())
        self.plan_is_empty()
        # Update in place.
        out = self.tf("apply", "-auto-approve", "-input=false", "-var=name=moon")
        self.assertIn("1 changed", out)
        self.assertEqual("Hello, moon!", self.text())
        # Drift: somebody wrote the file; then somebody removed it.
        with open(self.note, "w", encoding="utf-8") as file:
            file.write("other")
        self.tf("plan", "-detailed-exitcode", "-input=false", "-var=name=moon", code=2)
        os.remove(self.note)
        self.assertIn("1 to add", self.tf("plan", "-input=false", "-var=name=moon"))
        self.tf("apply", "-auto-approve", "-input=false", "-var=name=moon")
        # Import: the state is lost, the file stays.
        self.tf("state", "rm", "hello_file.note")
        self.tf("import", "-input=false", "-var=name=moon", "hello_file.note", "./note.txt")
        self.tf("plan", "-detailed-exitcode", "-input=false", "-var=name=moon")
        self.tf("destroy", "-auto-approve", "-input=false", "-var=name=moon")
        self.assertFalse(os.path.exists(self.note))
        self.nothing_left()

    def test_errors_point_at_the_configuration(self):
        out = self.tf("plan", "-input=false", "-var=name=", code=1)
        self.assertIn("name must not be empty", out)
        self.assertIn("main.tf line", out)
        with open(os.path.join(self.work, "more.tf"), "w", encoding="utf-8") as file:
            file.write('resource "hello_file" "bad" {\n  path = "/does/not/exist/x"\n  text = "t"\n}\n')
        out = self.tf("apply", "-auto-approve", "-input=false", code=1)
        self.assertIn("Cannot write the file", out)
        self.assertIn("No such file or directory", out)
        self.assertRegex(out, r"more\.tf line 2")
        self.nothing_left()

    def test_many_at_once(self):
        with open(os.path.join(self.work, "many.tf"), "w", encoding="utf-8") as file:
            file.write('resource "hello_file" "many" {\n  count = 200\n  path = "${path.module}/many-${count.index}"\n  text = "x"\n}\n')
        self.tf("apply", "-auto-approve", "-input=false", "-parallelism=50")
        self.assertEqual(200, len([n for n in os.listdir(self.work) if n.startswith("many-")]))
        self.plan_is_empty()

    def test_without_tls_and_with_traces(self):
        out = self.tf("plan", "-input=false", TF_DISABLE_PLUGIN_TLS="1", TF_LOG="trace")
        # Our lines keep their level and fields: they were parsed.
        self.assertRegex(out, r"\[TRACE\] provider\.terraform-provider-hello.*served request.*tf_rpc=PlanResourceChange")
        self.assertNotIn("plugin failed to exit gracefully", out)

    def test_schema_without_init(self):
        out = subprocess.run([binaries()[0], "providers", "schema", "-json"], cwd=self.work, env=self.env, capture_output=True,
                             text=True, timeout=60, check=True).stdout
        (schema,) = json.loads(out)["provider_schemas"].values()
        self.assertTrue(schema["resource_schemas"]["hello_file"]["block"]["attributes"]["path"]["required"])
        self.assertEqual("string", schema["functions"]["greet"]["return_type"])

    def test_reattach_serves_many_commands(self):
        server = subprocess.Popen([HELLO, "--debug"], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        guard = threading.Timer(60, server.kill)
        guard.start()
        self.addCleanup(guard.cancel)
        try:
            for line in server.stdout:
                found = re.search(r"TF_REATTACH_PROVIDERS='(.*)'", line)
                if found:
                    break
            env = {"TF_REATTACH_PROVIDERS": found.group(1)}
            self.tf("apply", "-auto-approve", "-input=false", **env)
            self.tf("plan", "-detailed-exitcode", "-input=false", **env)
            self.tf("destroy", "-auto-approve", "-input=false", **env)
            self.assertIsNone(server.poll())
        finally:
            server.send_signal(signal.SIGINT)
            self.assertEqual(0, server.wait(20))
        self.nothing_left()

    def test_a_crash_is_shown_to_the_user(self):
        fifo = os.path.join(self.work, "pipe")
        os.mkfifo(fifo)
        with open(os.path.join(self.work, "crash.tf"), "w", encoding="utf-8") as file:
            file.write('resource "hello_file" "slow" {\n  path = "${path.module}/pipe"\n  text = "x"\n}\n')
        # OpenTofu 1.12 throws away what a provider says before it crashes, whoever made the provider, unless its log is on.
        tofu = os.path.basename(binaries()[0]) == "tofu"
        env = {**self.env, "TF_LOG": "error"} if tofu else self.env
        # Writing into the pipe blocks the provider: time to hurt it.
        apply = subprocess.Popen([binaries()[0], "apply", "-auto-approve", "-input=false"], cwd=self.work, env=env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            # The change has begun when the first file is there.
            self._until(lambda: os.path.exists(self.note), 30)
            time.sleep(0.3)
            # One of them answers the function, one makes the change.
            for provider in self._providers_of(apply.pid):
                os.kill(provider, signal.SIGSEGV)
            out, _ = apply.communicate(timeout=60)
        finally:
            if apply.poll() is None:
                apply.kill()
                apply.wait()
            apply.stdout.close()
        self.assertNotEqual(0, apply.returncode)
        self.assertIn("Plugin did not respond" if tofu else "plugin crashed!", out)
        self.assertIn("panic: terraform-provider-hello 0.1.0: SIGSEGV", out)
        self.nothing_left()

    def _until(self, condition, limit):
        end = time.monotonic() + limit
        while not condition():
            self.assertLess(time.monotonic(), end, "waited too long")
            time.sleep(0.02)

    @staticmethod
    def _providers_of(parent):
        """-> pids of the provider processes that this terraform runs now."""
        return [pid for pid, one in processes.table().items() if one.parent == parent and one.name.startswith("terraform-provi")]


class Programs(unittest.TestCase):
    def test_only_the_c_library_is_linked_dynamically(self):
        for name in ("terraform-provider-sless", "terraform-provider-hello"):
            with self.subTest(name):
                out = subprocess.run(["ldd", os.path.join(BIN, name)], capture_output=True, text=True, timeout=20, check=True).stdout
                libraries = [line.split()[0] for line in out.splitlines()]
                if any("asan" in library for library in libraries):
                    self.skipTest("a sanitizer build")
                allowed = r"^(linux-vdso|libc|libm|libpthread|libdl|libresolv|librt|/lib64/ld-linux)[.-].*"
                self.assertEqual([], [library for library in libraries if not re.match(allowed, library)])

    def test_docsgen_has_help(self):
        done = subprocess.run([os.path.join(BIN, "docsgen"), "--help"], capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("--check", done.stdout)

    def test_a_person_is_told_what_it_is(self):
        for name in ("terraform-provider-sless", "terraform-provider-hello"):
            with self.subTest(name):
                done = subprocess.run([os.path.join(BIN, name)], capture_output=True, text=True, timeout=20, check=False)
                self.assertEqual((1, ""), (done.returncode, done.stdout))
                self.assertIn("is a plugin", done.stderr)


if __name__ == "__main__":
    unittest.main()
