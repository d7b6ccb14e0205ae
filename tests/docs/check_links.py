#!/usr/bin/env python3
"""Fails where a Markdown page of this repository points at something that is not there.

Checked are links to files and headings, and paths in backticks or code blocks that begin with a folder of this repository
(`server/deploy/sless.service`). A code block that begins with `# path` is an excerpt: its lines stand in that file, in their order. Links to other sites are left alone: no test needs the network.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w./~$-])((?:client|cmake|docs|examples|proto|provider|server|tests|tools)/[\w./-]*\w)")
# Pages that may name what is not there: the map draws what comes later, decisions speak of what was.
FREE = ("docs/architecture.md", "docs/decisions/")


def pages():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\n") if name and os.path.exists(os.path.join(ROOT, name))]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def without_code(text):
    """The text with code blocks and code spans blanked: what is in them is no link. Lines stay."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m.group().count("\n"), text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """-> the anchors of a page: those written as <a id>, and one for each heading (lower case, '-' for white space, other signs dropped)."""
    heads = re.findall(r"^#{1,6}\s+(.*?)\s*$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    written = set(re.findall(r'<a id="([^"]+)">', text))
    return written | {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head)).lower()) for head in heads}


def exists(path):
    # `x` in a page may stand for x.h and x.cc, as in docs/architecture.md.
    return any(os.path.exists(os.path.join(ROOT, path + end)) for end in ("", ".h", ".cc", ".proto"))


def excerpts(name, text):
    """-> problems of the code blocks that show a part of a file."""
    problems = []
    for file, block in re.findall(r"^```\w*\n# ([\w./-]+)\n(.*?)^```", text, re.M | re.S):
        if not os.path.isfile(os.path.join(ROOT, file)):
            continue  # another comment, or told of by its path
        rest = iter(read(file).split("\n"))
        for line in filter(str.strip, block.split("\n")):
            start = line.partition("…")[0]
            if not any(there.startswith(start) if "…" in line else there == line for there in rest):  # reads on to where it stands
                problems.append(f"{name}: the excerpt of {file} has the line {line!r}, which does not stand there, or not behind the one before")
                break
    return problems


def check(name):
    text, count = read(name), 0
    folder, problems = os.path.dirname(name), excerpts(name, text)
    for number, line in enumerate(without_code(text).split("\n"), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(folder, path)) if path else name
            if not os.path.exists(os.path.join(ROOT, file)):
                problems.append(f"{name}:{number}: the link {target} leads nowhere: there is no {file}")
            elif anchor and anchor not in anchors(read(file)):
                problems.append(f"{name}:{number}: the link {target} leads nowhere: {file} has no heading #{anchor}")
    if not name.startswith(FREE):
        for number, line in enumerate(text.split("\n"), 1):
            for path in PATH.findall(LINK.sub("", line)):
                count += 1
                # Relative to the repository or to the page: READMEs of examples speak of their own folder.
                if not exists(path) and not exists(os.path.join(folder, path)):
                    problems.append(f"{name}:{number}: {path} is not there")
    return problems, count


def main():
    problems, count, names = [], 0, pages()
    for name in names:
        found, checked = check(name)
        problems += found
        count += checked
    for problem in problems:
        print(problem)
    print(f"links: {count} links and paths in {len(names)} pages, {len(problems)} problems")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
