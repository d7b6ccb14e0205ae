#!/usr/bin/env python3
"""The main job, shown: `make demo`.

Starts a slessd of its own on a free port with its data in a temp folder, applies a copy of examples/quickstart with a real terraform (or
tofu), calls the URLs, edits one handler, applies again, shows the new answer and the empty next plan, then destroys and stops. Leaves no
process and no file behind, also when it fails or is interrupted.
"""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
sys.dont_write_bytecode = True

from tests.acceptance.harness.control_plane import ControlPlane, request  # noqa: E402
from tests.acceptance.harness.terraform_cli import Workspace  # noqa: E402


def say(text=""):
    print(text, flush=True)


def step(number, text):
    say(f"\n[{number}] {text}")


def show(text, most=40):
    lines = [line for line in text.splitlines() if line.strip()]
    for line in textwrap.dedent("\n".join(lines[-most:])).splitlines():
        say("    " + line)


def timed(function, *args, **kwargs):
    start = time.monotonic()
    result = function(*args, **kwargs)
    return result, time.monotonic() - start


def main():
    say("This demo starts a sless server of its own, deploys two functions with Terraform, calls them, changes one and removes them all.")
    with tempfile.TemporaryDirectory(prefix="sless-demo-", ignore_cleanup_errors=True) as folder:
        # Whatever anything below writes, it writes here.
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        plane = ControlPlane(own_session=True)
        try:
            show_life(plane, folder)
        finally:
            # The clean-up is short and bounded; a second Ctrl-C must not cut it off.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            plane.stop()
    say("\nDone: slessd has stopped, its folder is gone. examples/quickstart is yours to try; README.md says how to run slessd for real.")


def show_life(plane, folder):
    _, seconds = timed(plane.start)
    step(1, f"slessd, the server, runs at {plane.url} (started in {seconds:.2f} s)")
    say(f"    its data is in {folder}, which goes away at the end; functions run there as sandboxed local processes")
    workspace = Workspace(plane)
    shutil.copytree(os.path.join(ROOT, "examples", "quickstart"), workspace.work, dirs_exist_ok=True)
    name = os.path.basename(workspace.binary)

    step(2, f"{name} init: finds the provider in a folder, no registry is asked")
    workspace.init()
    step(3, f"{name} plan")
    planned = workspace.ok("plan", "-input=false").out
    show("\n".join(line.removeprefix("  # ") for line in planned.splitlines() if line.startswith(("  # ", "Plan:"))))

    step(4, f"{name} apply: two functions, their URLs, a cron trigger, one run of a job")
    done, seconds = timed(workspace.apply)
    show(done.out.split("Apply complete!")[1].split("Outputs:")[1])
    say(f"    applied in {seconds:.1f} s")
    outputs = workspace.outputs()

    step(5, "the URLs answer")
    for key in ("python_url", "node_url"):
        answer, seconds = timed(request, outputs[key] + "?name=demo")
        say(f"    GET {outputs[key]}?name=demo\n    {answer.status} {answer.text.strip()}   ({seconds * 1000:.0f} ms)")
        if answer.status != 200:
            raise AssertionError(f"{key} answered {answer}")

    step(6, "edit hello_python/handler.py, apply again: one change in place")
    path = workspace.path("hello_python/handler.py")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    marked = text.replace("def handle(", "EDITED = True\n\n\ndef handle(", 1)
    edited = marked.replace("return {", 'return {"edited": EDITED, ', 1)
    if edited == marked or marked == text:
        raise AssertionError("the quickstart's Python handler has no `return {` in `def handle(` to edit")
    with open(path, "w", encoding="utf-8") as file:
        file.write(edited)
    for address, change in workspace.plan().items():
        say(f"    plan: {address}: {'/'.join(change.actions)} of {', '.join(sorted(change.attributes))}")
    _, seconds = timed(workspace.apply)
    answer = request(outputs["python_url"] + "?name=demo")
    say(f"    applied in {seconds:.1f} s; GET {outputs['python_url']}?name=demo\n    {answer.status} {answer.text.strip()}"
        f"   (X-Sless-Revision: {answer.headers.get('x-sless-revision')})")
    if answer.status != 200 or "edited" not in answer.text:
        raise AssertionError("the new code does not answer")

    step(7, "the next plan is empty")
    done = workspace.ok("plan", "-input=false", "-detailed-exitcode")
    show("\n".join(line for line in done.out.splitlines() if "No changes" in line))

    step(8, f"{name} destroy")
    done, seconds = timed(workspace.destroy)
    show("\n".join(line for line in done.out.splitlines() if "Destroy complete!" in line and "Resources" in line))
    answer = request(outputs["python_url"])
    say(f"    GET {outputs['python_url']}\n    {answer.status} {answer.json()['message']}")
    if answer.status != 404:
        raise AssertionError("the URL still answers after destroy")


def interrupt(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    try:
        main()
    except KeyboardInterrupt:
        print("\ninterrupted: slessd has stopped and its folder is gone", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # whatever it is: one line for people, and the exit code
        print(f"\ndemo failed: {error or type(error).__name__}", file=sys.stderr)
        sys.exit(1)
