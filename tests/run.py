#!/usr/bin/env python3
"""Runs every test and closes with `N passed, N failed` (and `, N skipped` where some were).

    run.py [unit] [layering] [docs] [acceptance] [-k WORD]     no group: all of them

unit        each <room>_test of build/dev (AddressSanitizer and UndefinedBehaviorSanitizer), one process each
layering    who may include whom
docs        the committed registry pages are what docsgen makes
acceptance  tests/acceptance/test_*.py: real terraform, real slessd; two files at a time
A test that prints nothing for too long is ended and counts as failed. Only processes started here are ended.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNIT_LIMIT, FILE_LIMIT = 300, 900  # seconds


def run(args, limit, env=None):
    """-> (exit code or text, output). The whole process group ends at the limit."""
    process = subprocess.Popen(args, cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        out, _ = process.communicate(timeout=limit)
        return process.returncode, out
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        return f"longer than {limit} s", out


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.broken = []

    def add(self, name, passed, failed, skipped, seconds, output, fine):
        # A group that died, or that ran nothing, is a failure even if it counted none.
        if not fine and failed == 0:
            failed = 1
        if passed + failed + skipped == 0:
            failed, output = 1, output + "\n(no test ran)"
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
        print(f"{'ok  ' if failed == 0 else 'FAIL'} {name}: {passed} passed, {failed} failed, {skipped} skipped, {seconds:.1f} s", flush=True)
        if failed:
            self.broken.append((name, output))


def unit(totals, word):
    binaries = sorted(glob.glob(os.path.join(ROOT, "build", "dev", "tests", "*_test")))
    if not binaries:
        totals.add("unit", 0, 1, 0, 0, "no unit test is built; run `make test`", False)
    for binary in binaries:
        name = "unit " + os.path.basename(binary)
        if word and word not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            start = time.monotonic()
            code, out = run([binary, f"--gtest_output=json:{report}", "--gtest_brief=1"], UNIT_LIMIT)
            total = failures = skipped = 0
            if os.path.exists(report):
                with open(report, encoding="utf-8") as file:
                    data = json.load(file)
                total, failures = data["tests"], data["failures"]
                skipped = sum(1 for s in data["testsuites"] for t in s["testsuite"] if t.get("result") == "SKIPPED")
            totals.add(name, total - failures - skipped, failures, skipped, time.monotonic() - start, out, code == 0)


def command(totals, name, args):
    start = time.monotonic()
    code, out = run(args, 120)
    totals.add(name, 1 if code == 0 else 0, 0 if code == 0 else 1, 0, time.monotonic() - start, out, code == 0)


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
            count = {k: int(v) for k, v in re.findall(r"(failures|errors|skipped|expected failures)=(\d+)", out.rsplit("\nRan ", 1)[-1])}
            failed = count.get("failures", 0) + count.get("errors", 0)
            skipped = count.get("skipped", 0)
            total = int(ran.group(1)) if ran else 0
            totals.add("acceptance " + os.path.basename(path), max(0, total - failed - skipped), failed, skipped, seconds, out, code == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP")
    parser.add_argument("-k", metavar="WORD", default="", help="only tests or files whose name has this word")
    args = parser.parse_args()
    groups = args.groups or ["unit", "layering", "docs", "acceptance"]
    unknown = set(groups) - {"unit", "layering", "docs", "acceptance"}
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    totals = Totals()
    if "layering" in groups:
        command(totals, "layering", [sys.executable, "tests/layering/check_includes.py"])
    if "docs" in groups:
        command(totals, "docs", [os.path.join(ROOT, "build", "bin", "docsgen"), "--check", "."])
    if "unit" in groups:
        unit(totals, args.k)
    if "acceptance" in groups:
        acceptance(totals, args.k)
    for name, output in totals.broken:
        print(f"\n----- {name} -----\n{output[-20000:]}")
    print(f"{totals.passed} passed, {totals.failed} failed" + (f", {totals.skipped} skipped" if totals.skipped else ""))
    return 1 if totals.failed or totals.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
