#!/usr/bin/env python3
"""How long Terraform takes to apply, plan and destroy many resources, and how much memory the provider takes for it.

One configuration with --count resources of one kind each: terraform_data (no plugin: the floor), a provider on the usual Go framework
(the peer), hello_file of this repository's framework, and sless_job with run_id = 0 against a real slessd. In turns, --rounds times.
Prints the median seconds and their ratio to the peer's, the provider's processor seconds (sampled) and its peak resident memory (VmHWM).

    many_resources.py [--count 500] [--rounds 3] [--parallelism 50]

Programs: build/bin (or $SLESS_BIN), terraform or tofu on PATH; go for the peer.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import go_peer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.acceptance.harness.control_plane import BIN, ControlPlane  # noqa: E402
from tests.acceptance.harness.terraform_cli import binaries, mirror  # noqa: E402

FLOOR = '''resource "terraform_data" "x" {
  count = %d
  input = { path = "p${count.index}", text = "t" }
}
'''
PEER = '''terraform {
  required_providers {
    peer = { source = "bench/peer" }
  }
}
resource "peer_thing" "x" {
  count = %d
  path  = "p${count.index}"
  text  = "t"
}
'''
HELLO = '''terraform {
  required_providers {
    hello = { source = "bench/hello" }
  }
}
resource "hello_file" "x" {
  count = %d
  path  = "p${count.index}"
  text  = "t"
}
'''
JOBS = '''terraform {
  required_providers {
    sless = { source = "bench/sless" }
  }
}
resource "sless_function" "f" {
  name        = "f"
  runtime     = "python3.11"
  source_code = "def handle(event, context):\\n    return 1\\n"
}
resource "sless_job" "x" {
  count    = %d
  name     = "j${count.index}"
  function = sless_function.f.name
}
'''


class Subject:
    """One kind of resource in a folder of its own. program: the provider's, "" for none."""

    def __init__(self, name, text, program, folder, host, environment):
        self.name, self.program, self.folder, self.host = name, program, folder, host
        self.seconds = {"apply": [], "plan": [], "destroy": []}
        self.busy = {"apply": [], "plan": [], "destroy": []}
        self.peak = {"apply": 0, "plan": 0, "destroy": 0}
        folder.mkdir()
        (folder / "main.tf").write_text(text)
        self.environment = environment
        if program:
            kind = os.path.basename(program).rpartition("-")[2]
            mirror(folder / "mirror", program, f"bench/{kind}", "0.1.0")
            rc = folder / "cli.tfrc"
            rc.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{folder}/mirror"\n  }}\n}}\n')
            self.environment = {**environment, "TF_CLI_CONFIG_FILE": str(rc)}
        self.run("init", "-input=false")

    def run(self, *args):
        """-> (seconds, processor seconds of the provider, its peak kB). Raises where the command fails."""
        began = time.perf_counter()
        with open(self.folder / "out.txt", "wb") as out:
            process = subprocess.Popen([self.host, *args], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT)
            peak, busy = 0, {}
            try:
                while process.poll() is None:
                    if time.perf_counter() - began > 600:
                        raise RuntimeError(f"{self.name}: {args[0]} takes more than 600 s")
                    for pid in self.providers(process.pid):
                        for line in self.read(f"/proc/{pid}/status").splitlines():
                            if line.startswith("VmHWM:"):
                                peak = max(peak, int(line.split()[1]))
                        ticks = self.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
                        if ticks:
                            busy[pid] = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
                    time.sleep(0.01)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        took = time.perf_counter() - began
        if process.returncode != 0:
            raise RuntimeError(f"{self.name}: {' '.join(args)} failed:\n{(self.folder / 'out.txt').read_text()[-2000:]}")
        return took, sum(busy.values()), peak

    def providers(self, pid):
        """Pids of terraform's children that are this provider; a child that was forked just now still is a copy of terraform."""
        for task in self.list(f"/proc/{pid}/task"):
            for child in self.read(f"/proc/{pid}/task/{task}/children").split():
                try:
                    if self.program and os.path.samefile(f"/proc/{child}/exe", self.program):
                        yield child
                except OSError:
                    continue

    @staticmethod
    def list(path):
        try:
            return os.listdir(path)
        except OSError:
            return []

    @staticmethod
    def read(path):
        try:
            return pathlib.Path(path).read_text()
        except OSError:
            return ""

    def round(self, parallelism):
        common = ["-input=false", f"-parallelism={parallelism}"]
        for step, args in (("apply", ["apply", "-auto-approve"]), ("plan", ["plan", "-detailed-exitcode"]),
                           ("destroy", ["destroy", "-auto-approve"])):
            took, busy, peak = self.run(*args, *common)  # -detailed-exitcode: a plan that is not empty fails here
            self.seconds[step].append(took)
            self.busy[step].append(busy)
            self.peak[step] = max(self.peak[step], peak)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parallelism", type=int, default=50)
    options = parser.parse_args()
    host = binaries()[0]
    plane = ControlPlane()
    with tempfile.TemporaryDirectory(prefix="many-resources-") as temp:
        folder = pathlib.Path(temp)
        try:
            plane.start()
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "SLESS_"))}
            environment |= {"CHECKPOINT_DISABLE": "1", "TMPDIR": temp, "SLESS_ENDPOINT": plane.url, "SLESS_TOKEN": plane.token}
            peer = go_peer.build(folder / "peer-source")
            subjects = [Subject("terraform_data", FLOOR % options.count, "", folder / "floor", host, environment)]
            if peer:
                subjects.append(Subject("peer (Go)", PEER % options.count, str(peer), folder / "peer", host, environment))
            for name, text, program in (("hello_file", HELLO, "hello"), ("sless_job", JOBS, "sless")):
                program = os.path.join(BIN, "terraform-provider-" + program)
                subjects.append(Subject(name, text % options.count, program, folder / name, host, environment))
            for _ in range(options.rounds):
                for subject in subjects:
                    subject.round(options.parallelism)
            versus = next((s for s in subjects if s.name.startswith("peer")), None)
            print(f"{options.count} resources, -parallelism={options.parallelism}, {options.rounds} rounds, {os.path.basename(host)}")
            print(f"{'':<16}" + "".join(f"{step + ' s':>11}{'to peer':>9}{'cpu s':>7}{'MB':>5}" for step in subjects[0].seconds))
            for subject in subjects:
                line = f"{subject.name:<16}"
                for step, seconds in subject.seconds.items():
                    median = statistics.median(seconds)
                    ratio = f"{median / statistics.median(versus.seconds[step]):.2f}" if versus else "-"
                    line += f"{median:>11.2f}{ratio:>9}"
                    line += f"{statistics.median(subject.busy[step]):>7.2f}{subject.peak[step] / 1024:>5.0f}"
                print(line)
        finally:
            plane.stop()
            shutil.rmtree(folder / "peer-source", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
