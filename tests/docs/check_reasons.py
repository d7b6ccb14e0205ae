#!/usr/bin/env python3
"""Holds docs/errors.md against the code: every reason of an error stands in its tables, once, and every one in the tables is in the code; so do the
codes and their HTTP statuses.

A reason is a CamelCase literal of client/ or server/ that is nothing else: comparisons are left out, and so are the words below.
"""
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOC = "docs/errors.md"
ERROR_BODY = "client/api/error_body.cc"
# Words that are no reasons. A new phase, kind, header or schema that reads like a reason goes here.
OTHER_WORDS = set("""
    Pending Building Built Deploying Ready Failed Deleting Disabled Running Succeeded Skipped
    Function Trigger Job Run Revision Token
    Accept Allow Authorization Bearer Connection Date Expect Host Location
    Any Code Error Health Info Input List LogList NamespaceList Patch Retry RunList
    Factory ResolutionImpossible
""".split())
OTHER_FILES = ("client/base/result.cc", "server/http/head_writer.cc", "server/handlers/openapi.cc")  # codes, HTTP phrases, schemas
# Said by one room to the next, never to a caller.
INNER = {"NotBegun", "NotStarted", "NotYet", "ConnectionLost"}
LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"((?:\\.|[^"\\\n])*)"', re.S)


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def sources():
    for top in ("client", "server"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                if name.endswith((".h", ".cc")) and not name.endswith("_test.cc") and "/testing/" not in path and path not in OTHER_FILES:
                    yield path


def in_code():
    """-> {word: file:line of its first place}"""
    found = {}
    for path in sources():
        text = read(path)
        for match in LITERAL.finditer(text):
            word = match.group(2) or ""
            if not re.fullmatch(r"(?:[A-Z][a-z]+)+", word) or word in OTHER_WORDS or re.search(r"[!=]=\s*$", text[:match.start()][-40:]):
                continue
            found.setdefault(word, f"{path}:{text.count(chr(10), 0, match.start()) + 1}")
    return found


def rows(name, heading=""):
    """-> [(word, second cell)] of the tables of a page, from a heading on; a first cell may name several words."""
    found = []
    for first, second in re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|", read(name).partition(heading)[2] if heading else read(name), re.M):
        found += [(word, second) for word in re.findall(r"`([A-Z]\w+)`", first)]
    return found


def main():
    problems = []
    codes, _, rest = read(DOC).partition("\n## Reasons")
    documented = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", codes, re.M))
    written = {f"k{name}": status for name, status in documented.items()}
    real = dict(re.findall(r"\bRow\{Code::(k\w+), (\d+)\}", read(ERROR_BODY)))
    if written != real:
        problems.append(f"{DOC}: the table of codes and {ERROR_BODY} differ: {sorted(set(written.items()) ^ set(real.items()))}")

    reasons = rows(DOC, "\n## Reasons")
    code = in_code()
    problems += [f"{DOC}: {word} stands there {n} times" for word, n in collections.Counter(word for word, _ in reasons).items() if n > 1]
    reasons = dict(reasons)
    runner = {word for word, _ in rows("docs/runner.md")}
    for word, place in sorted(code.items()):
        if word not in reasons and word not in runner and word not in INNER:
            problems.append(f"{place}: the reason {word} has no row in {DOC} (if it is none, {os.path.relpath(__file__, ROOT)} has a list for it)")
    problems += [f"{DOC}: nothing in the code has the reason {word}" for word in sorted(set(reasons) - set(code))]
    problems += [f"{word} is said to be an inner reason, but is not in the code" for word in sorted(INNER - set(code))]
    for word, status in re.findall(r'\bReasonRow\{"(\w+)", (\d+)\}', read(ERROR_BODY)):
        if status not in reasons.get(word, ""):
            problems.append(f"{DOC}: {word} is answered as {status} ({ERROR_BODY}), its row says {reasons.get(word)}")
    for problem in problems:
        print(problem)
    print(f"reasons: {len(code)} in the code, {len(reasons)} in {DOC}, {len(problems)} problems")
    return 1 if problems or not code or not real else 0


if __name__ == "__main__":
    sys.exit(main())
