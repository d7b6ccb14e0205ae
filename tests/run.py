#!/usr/bin/env python3
"""Runs every test. The last line is `N passed, N failed`, the lines before it say what was skipped and why.

    run.py [unit] [layering] [docs] [fuzz] [acceptance] [-k WORD]     no group: all of them

unit        each <room>_test of build/dev (AddressSanitizer and UndefinedBehaviorSanitizer), one process each
layering    who may include whom
fuzz        each fuzz target: its corpus, then a second of mutations
docs        the committed registry pages are what docsgen makes; links of all pages; the reasons of docs/errors.md;
            the map of docs/architecture.md
acceptance  tests/acceptance/test_*.py: real terraform, real slessd; two files at a time
A test that takes too long is ended and counts as failed. Only processes started here are ended. Tests write below one temp folder, which goes away
at the end; what they left in it, or left running, counts as failed too. Ctrl-C ends everything that runs.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
sys.dont_write_bytecode = True

from tests.acceptance.harness.processes import below  # noqa: E402

UNIT_LIMIT, FILE_LIMIT = 300, 900  # seconds
INTERRUPTED = threading.Event()
RUNNING = set()  # pids of what run() waits for


def end(pid):
    """Kills a process that was started here and all below it, also those with a session of their own."""
    for one in [pid, *below(pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def interrupt(_number, _frame):
    INTERRUPTED.set()
    for pid in list(RUNNING):
        end(pid)


def run(args, limit, env=None):
    """-> (exit code or text, output). It and all that it started ends at the limit."""
    if INTERRUPTED.is_set():
        return "interrupted", ""
    try:
        process = subprocess.Popen(args, cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    except OSError as error:
        return "not started", f"{error}; is everything built? run `make test`"
    RUNNING.add(process.pid)
    try:
        out, _ = process.communicate(timeout=limit)
        return process.returncode, out
    except subprocess.TimeoutExpired:
        end(process.pid)
        out, _ = process.communicate()
        return f"longer than {limit} s", out + f"\n(ended: it took longer than {limit} s)"
    finally:
        RUNNING.discard(process.pid)


def left_behind(totals, folder):
    """Nothing may be left in the tests' temp folder, and no process that had it as TMPDIR."""
    found, deadline = ["?"], time.monotonic() + 5
    while found and time.monotonic() < deadline:  # what has been told to end may take a moment
        found = ["file " + name for name in os.listdir(folder)]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if int(pid) != os.getpid() and b"TMPDIR=" + folder.encode() in file.read():
                        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as line:
                            found.append(f"process {pid}: " + line.read().replace("\0", " "))
            except OSError:
                continue
        if found:
            time.sleep(0.2)
    if found:
        totals.add("left behind by tests", 0, 1, [], 0, "\n".join(found), False)


class Totals:
    def __init__(self):
        self.passed = self.failed = 0
        self.skipped, self.broken = [], []  # lines; (name, output)

    def add(self, name, passed, failed, skipped, seconds, output, fine):
        """skipped: "test: why" of each test that was skipped."""
        # A group that died, or that ran nothing, is a failure even if it counted none.
        if not fine and failed == 0:
            failed = 1
        if passed + failed + len(skipped) == 0:
            failed, output = 1, output + "\n(no test ran)"
        self.passed, self.failed = self.passed + passed, self.failed + failed
        self.skipped += [f"{name}: {one}" for one in skipped]
        print(f"{'ok  ' if failed == 0 else 'FAIL'} {name}: {passed} passed, {failed} failed, {len(skipped)} skipped, {seconds:.1f} s", flush=True)
        if failed:
            self.broken.append((name, output))


def unit(totals, word):
    binaries = sorted(glob.glob(os.path.join(ROOT, "build", "dev", "tests", "*_test")))
    if not binaries:
        totals.add("unit", 0, 1, [], 0, "no unit test is built; run `make test`", False)
    for binary in binaries:
        name = "unit " + os.path.basename(binary)
        if word and word not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.xml")
            start = time.monotonic()
            code, out = run([binary, f"--gtest_output=xml:{report}", "--gtest_brief=1"], UNIT_LIMIT)
            total = failures = 0
            skipped = []
            if os.path.exists(report):
                cases = xml.etree.ElementTree.parse(report).getroot()
                total, failures = int(cases.get("tests")), int(cases.get("failures"))
                skipped = [f"{case.get('classname')}.{case.get('name')}: {(case.find('skipped').text or '').partition(chr(10))[2]}"
                           for case in cases.iter("testcase") if case.find("skipped") is not None]
            totals.add(name, total - failures - len(skipped), failures, skipped, time.monotonic() - start, out, code == 0)


def command(totals, name, args):
    start = time.monotonic()
    code, out = run(args, 120)
    totals.add(name, 1 if code == 0 else 0, 0 if code == 0 else 1, [], time.monotonic() - start, out, code == 0)


def fuzz(totals, word):
    targets = sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "*_fuzz.cc")))
    for name in (os.path.basename(t)[:-3] for t in targets):
        if word and word not in name:
            continue
        corpus = os.path.join(ROOT, "tests", "fuzz", "corpus", name.removesuffix("_fuzz"))
        binary = os.path.join(ROOT, "build", "dev", "fuzz", name)
        command(totals, "fuzz " + name, [binary, "--seconds", "1", "--seed", "1",  # the same run everywhere
                                           *([corpus] if os.path.isdir(corpus) else [])])


def acceptance(totals, word):
    files = sorted(glob.glob(os.path.join(ROOT, "tests", "acceptance", "test_*.py")))
    files = [f for f in files if not word or word in f]

    def one(path):
        start = time.monotonic()
        module = "tests.acceptance." + os.path.basename(path)[:-3]
        code, out = run([sys.executable, "-X", "faulthandler", "-m", "unittest", "-v", module], FILE_LIMIT, {"PYTHONDONTWRITEBYTECODE": "1"})
        return path, code, out, time.monotonic() - start

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, code, out, seconds in pool.map(one, files):
            ran = re.search(r"^Ran (\d+) tests? in", out, re.M)
            count = {k: int(v) for k, v in re.findall(r"(failures|errors|skipped)=(\d+)", out.rsplit("\nRan ", 1)[-1])}
            failed = count.get("failures", 0) + count.get("errors", 0)
            skipped = [f"{test}: {why}" for test, why in re.findall(r"^ *(.*) \.\.\. skipped (.*)$", out, re.M)]
            skipped += ["a test that printed something"] * (count.get("skipped", 0) - len(skipped))
            total = int(ran.group(1)) if ran else 0
            totals.add("acceptance " + os.path.basename(path), max(0, total - failed - len(skipped)), failed, skipped, seconds, out, code == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP")
    parser.add_argument("-k", metavar="WORD", default="", help="only tests or files whose name has this word")
    args = parser.parse_args()
    groups = args.groups or ["unit", "layering", "docs", "fuzz", "acceptance"]
    unknown = set(groups) - {"unit", "layering", "docs", "fuzz", "acceptance"}
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    totals = Totals()
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    with tempfile.TemporaryDirectory(prefix="sless-run-", ignore_cleanup_errors=True) as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        if "layering" in groups:
            command(totals, "layering", [sys.executable, "tests/layering/check_includes.py"])
        if "docs" in groups:
            command(totals, "docs pages", [os.path.join(ROOT, "build", "bin", "docsgen"), "--check", "."])
            command(totals, "docs links", [sys.executable, "tests/docs/check_links.py"])
            command(totals, "docs reasons", [sys.executable, "tests/docs/check_reasons.py"])
            command(totals, "docs map", [sys.executable, "tests/layering/check_map.py"])
        if "unit" in groups:
            unit(totals, args.k)
        if "fuzz" in groups:
            fuzz(totals, args.k)
        if "acceptance" in groups:
            acceptance(totals, args.k)
        if not INTERRUPTED.is_set():
            left_behind(totals, folder)
    if INTERRUPTED.is_set():
        print("interrupted", file=sys.stderr)
        return 130
    for name, output in totals.broken:
        print(f"\n----- {name} -----\n{output[-20000:]}")
    for line in totals.skipped:
        print(f"skipped: {line}")
    print(f"{totals.passed} passed, {totals.failed} failed")
    return 1 if totals.failed or totals.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
