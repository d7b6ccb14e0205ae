#!/usr/bin/env python3
"""Holds docs/architecture.md against the tree: the table of section 3 against the DEPS lists of CMake, the rooms of section 2 against the folders.

The table may allow more than a room uses today. What it marks as later, or names as one of many ("drivers"), is not checked.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from check_includes import ROOT, rooms  # noqa: E402

DOC = os.path.join(ROOT, "docs", "architecture.md")


def table(text):
    """-> {room: set of rooms that it may include} from section 3."""
    section = re.search(r"^## 3\..*?^## 4\.", text, re.M | re.S).group()
    found = {}
    for left, right in re.findall(r"^\| (.*?) \| (.*?) \|$", section, re.M):
        # What stands in brackets explains; it names no further room.
        words = set(re.findall(r"[a-z_]+", re.sub(r"\([^)]*\)", "", right)))
        for name in re.findall(r"`([a-z_/]+)`", left):
            found[name] = words
    return found


def main():
    with open(DOC, encoding="utf-8") as file:
        text = file.read()
    allowed, problems, checked = table(text), [], 0
    drivers = {"store_memory", "store_sqlite", "artifact_filesystem", "build_process", "runtime_process"}
    for name, (folder, deps, _) in sorted(rooms().items()):
        checked += 1
        if name in ("app", "provider"):
            continue  # every room of their own program
        if name in drivers:
            interface = name.split("_")[0]
            may = {interface, "sandbox", "kube", "transport", "observe", "api", "base"} | ({"artifact", "source", "oci"} if interface == "build" else set())
        elif name in allowed:
            may = allowed[name]
        else:
            problems.append(f"{folder}: section 3 has no line for the room {name}")
            continue
        for dep in sorted(deps - may):
            problems.append(f"{folder}: CMake lets {name} include {dep}, section 3 does not")
        tree = re.search(r"^## 2\..*?^## 3\.", text, re.M | re.S).group()
        if not re.search(r"(^|[\s/{,])" + re.escape(os.path.basename(folder)) + r"[/},]", tree, re.M):
            problems.append(f"{folder}: section 2 does not show it")
    for problem in problems:
        print(problem)
    print(f"map: {checked} rooms, {len(problems)} problems")
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
