"""A real terraform (or tofu) in a temp folder: the same steps as people take, and what a plan says as data."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from .control_plane import BIN


def binaries():
    """-> paths of the host programs to test with: those named in SLESS_TEST_TERRAFORM (':' between), else terraform and tofu on PATH."""
    named = os.environ.get("SLESS_TEST_TERRAFORM")
    if named:
        return named.split(":")
    found = [path for path in (shutil.which("terraform"), shutil.which("tofu")) if path]
    if not found:
        raise AssertionError("neither terraform nor tofu is on PATH; run tools/setup.sh")
    return found


def mirror(folder, program, source, version=None):
    """Puts a provider into a filesystem mirror for terraform and tofu, as tools/install_provider.sh does, but by links: the version is the program's
    own word unless given, the platform this machine's. source: "namespace/name"."""
    if version is None:
        told = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
        found = re.search(r"\d+\.\d+\.\d+", told.stdout)
        if not found:
            raise AssertionError(f"{program} --version names no version: {told.stdout}{told.stderr}")
        version = found.group()
    machine = os.uname().machine
    platform = "linux_" + {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    for host in ("registry.terraform.io", "registry.opentofu.org"):
        place = os.path.join(folder, host, source, version, platform)
        os.makedirs(place)
        os.symlink(os.path.abspath(program), os.path.join(place, f"terraform-provider-{source.rpartition('/')[2]}_v{version}"))


class Done:
    """A finished command. code: int, out, err: text without colours; text: both."""

    def __init__(self, args, code, out, err, seconds):
        self.args, self.code, self.seconds = args, code, seconds
        self.out, self.err = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in (out, err))

    @property
    def text(self):
        return self.out + self.err

    @property
    def flat(self):
        """The text with the diagnostics' frame and line breaks taken out, for searching sentences."""
        return re.sub(r"\s+", " ", re.sub(r"[│╷╵]", " ", self.text))

    def __repr__(self):
        return f"{' '.join(self.args)} -> {self.code} in {self.seconds:.1f} s\n{self.text}"


class Workspace:
    """One configuration folder. Files are written by write(); commands run there with a CLI configuration of their own."""

    def __init__(self, plane, binary=None, namespace=None):
        self.plane = plane
        self.binary = binary or binaries()[0]
        self.dir = tempfile.mkdtemp(prefix="sless-tf-")
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)
        # What the host and a killed provider leave (sockets) goes away with the workspace.
        temp = os.path.join(self.dir, "tmp")
        os.mkdir(temp)
        self.mirror_dir = os.path.join(self.dir, "mirror")
        mirror(self.mirror_dir, os.path.join(BIN, "terraform-provider-sless"), "sless/sless")
        self.rc = os.path.join(self.dir, "cli.tfrc")
        with open(self.rc, "w", encoding="utf-8") as file:
            file.write('provider_installation {\n  filesystem_mirror {\n    path = "%s"\n  }\n}\n' % self.mirror_dir)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "SLESS_"))}
        self.env.update(TMPDIR=temp, TF_CLI_CONFIG_FILE=self.rc, CHECKPOINT_DISABLE="1", TF_IN_AUTOMATION="1", NO_COLOR="1")
        if plane is not None:
            self.env.update(SLESS_ENDPOINT=plane.url, SLESS_TOKEN=plane.token)
        if namespace:
            self.env["SLESS_NAMESPACE"] = namespace
        self._initialised = False

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    # --- files --------------------------------------------------------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, content, mode=None):
        """Writes a file below the configuration folder. content: str or bytes."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        if mode is not None:
            os.chmod(path, mode)
        return path

    def config(self, text):
        """main.tf = the required_providers block and `text`."""
        self.write("main.tf", 'terraform {\n  required_providers {\n    sless = {\n      source = "sless/sless"\n    }\n  }\n}\n\n' + text)

    # --- commands -----------------------------------------------------------------------------------------------------------

    def run(self, *args, timeout=120, env=None):
        start = time.monotonic()
        process = subprocess.Popen([self.binary, *args], cwd=self.work, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException as reason:  # a Ctrl-C too: nothing that was started here may stay
            with contextlib.suppress(ProcessLookupError):  # it may have ended just now
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            if isinstance(reason, subprocess.TimeoutExpired):
                raise AssertionError(f"{args} took longer than {timeout} s:\n{out}{err}") from None
            raise
        return Done([os.path.basename(self.binary), *args], process.returncode, out, err, time.monotonic() - start)

    def start(self, *args, env=None):
        """Starts a command in a process group of its own, for interrupts. -> Popen with out and err as pipes."""
        self.init()
        return subprocess.Popen([self.binary, *args], cwd=self.work, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def ok(self, *args, **kwargs):
        done = self.run(*args, **kwargs)
        if done.code != 0:
            raise AssertionError(repr(done) + self._server_log())
        return done

    def _server_log(self):
        return f"\n--- slessd ---\n{self.plane.log_tail()}" if self.plane is not None else ""

    def init(self):
        if not self._initialised:
            self.ok("init", "-input=false")
            self._initialised = True

    def apply(self, *args, **kwargs):
        """apply that must succeed. -> Done"""
        self.init()
        return self.ok("apply", "-auto-approve", "-input=false", *args, **kwargs)

    def apply_fails(self, *args, **kwargs):
        """apply that must fail. -> Done"""
        self.init()
        done = self.run("apply", "-auto-approve", "-input=false", *args, **kwargs)
        if done.code == 0:
            raise AssertionError("apply should fail, but: " + repr(done))
        return done

    def plan_fails(self, *args, **kwargs):
        self.init()
        done = self.run("plan", "-input=false", *args, **kwargs)
        if done.code != 1:
            raise AssertionError("plan should fail, but: " + repr(done))
        return done

    def destroy(self, *args, **kwargs):
        self.init()
        return self.ok("destroy", "-auto-approve", "-input=false", *args, **kwargs)

    def plan(self, *args):
        """-> {address: Change} of what is not a no-op; output changes are under "output.NAME"."""
        self.init()
        self.ok("plan", "-input=false", "-out=plan.bin", *args)
        shown = json.loads(self.ok("show", "-json", "plan.bin").out)
        os.remove(self.path("plan.bin"))
        changes = {c["address"]: Change(c["change"]) for c in shown.get("resource_changes", []) if c["change"]["actions"] != ["no-op"]}
        for name, change in shown.get("output_changes", {}).items():
            if change["actions"] != ["no-op"]:
                changes["output." + name] = Change(change)
        return changes

    def state(self, address):
        """-> the attributes of one resource in state, or None."""
        shown = json.loads(self.ok("show", "-json").out)

        def walk(module):
            yield from module.get("resources", [])
            for child in module.get("child_modules", []):
                yield from walk(child)

        for resource in walk(shown.get("values", {}).get("root_module", {})):
            if resource["address"] == address:
                return resource["values"]
        return None

    def outputs(self):
        return {k: v["value"] for k, v in json.loads(self.ok("output", "-json").out).items()}


class Change:
    """One planned change. actions: ["create"] and so on; attributes: names that differ or become unknown."""

    def __init__(self, change):
        self.actions = change["actions"]
        self.before = change.get("before")
        self.after = change.get("after")
        self.unknown = change.get("after_unknown")
        self.attributes = set()
        if isinstance(self.before, dict) and isinstance(self.after, dict):
            unknown = self.unknown if isinstance(self.unknown, dict) else {}
            for name in set(self.before) | set(self.after) | set(unknown):
                if self.before.get(name) != self.after.get(name) or unknown.get(name) is True:
                    self.attributes.add(name)

    def __repr__(self):
        return f"{'/'.join(self.actions)} {sorted(self.attributes)}"
