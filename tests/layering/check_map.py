#!/usr/bin/env python3
"""Holds docs/architecture.md against the tree: the table of section 3 against the DEPS lists of CMake, the names of section 2 against the files,
excerpts against the code they are from, and whatever it names in backticks against all of the code.

The table may allow more than a room uses today. What it marks as later, or names as one of many ("drivers"), is not checked.
"""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from check_includes import DRIVERS, ROOT, rooms  # noqa: E402

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


def tracked():
    """-> paths of all files of the repository."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in out.split("\n") if path and os.path.exists(os.path.join(ROOT, path))]


def alternatives(name):
    """a/{b,c}.d -> a/b.d, a/c.d"""
    found = re.search(r"\{([^}]*)\}", name)
    return [one for part in found.group(1).split(",") for one in alternatives(name.replace(found.group(), part))] if found else [name]


def there(path):
    path = os.path.join(ROOT, path.replace("NNNN-title", "*"))
    return any(glob.glob(path + end) for end in ("", ".h", ".cc", ".py"))


def tree_problems(tree, files):
    """Names of the tree of section 2: at the left those of the folder they are indented under, at the right words that can only be file names."""
    stems = {os.path.basename(path).split(".")[0] for path in files} | {os.path.basename(path) for path in files}
    problems, folders, continued = [], [(-1, "")], False
    for line in tree.split("\n"):
        indent = len(line) - len(line.lstrip())
        names, _, text = ("", "", line.strip()) if indent > 20 else (re.split(r"( {3,})", line.strip(), maxsplit=1) + ["", ""])[:3]
        continued = continued if indent > 20 else False
        if continued or not line.strip():
            continue
        if text.startswith("later"):
            continued = True
            continue
        if names:
            while folders[-1][0] >= indent:
                folders.pop()
        parent = folders[-1][1]
        for name in re.split(r"\s+", names) if names else []:
            for one in alternatives(name):
                if not there(os.path.join(parent, one.rstrip("/"))):
                    problems.append(f"section 2: {os.path.join(parent, one)} is not there")
        if names.rstrip().endswith("/") and " " not in names.strip():
            folders.append((indent, os.path.join(parent, names.strip().rstrip("/"))))
        for word in re.findall(r"\b[a-z][\w*-]*(?:\.(?:h|cc|py|sh|txt|cmake))?", text.partition("later:")[0]):
            if ("_" in word or re.search(r"\.(h|cc|py|sh)$", word)) and not word.startswith(("x_", "sless_")) and word not in stems:
                problems.append(f"section 2: no file is called {word}")
    return problems


def flat(code):
    """Code without white space and the marks of comments, so that another break of lines is no difference."""
    return re.sub(r"\s|///?<?", "", code)


def excerpt_problems(text):
    problems = []
    for block in re.findall(r"^```(?:cpp|cmake)\n(.*?)^```", text, re.M | re.S):
        first, _, code = block.partition("\n")
        mark, _, path = first.partition(" ")
        if mark not in ("//", "#") or not there(path):
            problems.append(f"an excerpt begins with \"{first}\", which is no comment with the name of a file")
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            whole, at = flat(file.read()), 0
        for piece in code.split("…"):
            at = whole.find(flat(piece), at)
            if at < 0:
                problems.append(f"{path} does not have (or not in this order): {piece.strip()[:200]}")
                break
    return problems


def name_problems(text, files):
    """CamelCase names and paths in backticks, but for lines that speak of later."""
    code = "\n".join(open(os.path.join(ROOT, path), encoding="utf-8").read() for path in files if path.endswith((".h", ".cc", ".cmake")))
    words = set(re.findall(r"\w+", code))
    problems = []
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for line in prose.split("\n"):
        if "later" in line:
            continue
        for span in re.findall(r"`([^`]+)`", line):
            for word in re.findall(r"\b[A-Z][a-z]+(?:[A-Z]\w*)+\b|\b\w+(?=::)|(?<=::)\w+", span):
                if word not in words and word != "PascalCase":
                    problems.append(f"nothing in the code is called {word} (`{span}`)")
            if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", span) and not re.search(r"\bx\b|x_|_x\b|_case\b", span):
                if not any(there(top + span.rstrip("/")) for top in ("", "server/", "client/", "provider/", "provider/framework/", "tests/")):
                    problems.append(f"{span} is not there")
    return problems


def main():
    with open(DOC, encoding="utf-8") as file:
        text = file.read()
    allowed, problems, checked = table(text), [], 0
    for name, (folder, deps, _) in sorted(rooms().items()):
        checked += 1
        if name in ("app", "provider"):
            continue  # every room of their own program
        if name in DRIVERS:
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
    files = tracked()
    tree = re.search(r"^## 2\..*?^```\n(.*?)^```", text, re.M | re.S).group(1)
    problems += tree_problems(tree, files) + excerpt_problems(text) + name_problems(text, files)
    for problem in problems:
        print(problem)
    print(f"map: {checked} rooms, {len(problems)} problems")
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
