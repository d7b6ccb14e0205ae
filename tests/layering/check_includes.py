#!/usr/bin/env python3
"""Fails when an #include breaks the dependency rule of docs/architecture.md, section 3.

The rule is the DEPS list of each sless_room() call in CMake, so that it is stated once; here every quoted #include of a room's files is
held against it, and a room in DEPS that no file of the room includes is a mistake too. Tests and testing/ folders may also include what TEST_DEPS names and any testing/ folder. Of the drivers only app/drivers.cc
knows. Which rooms include which library is said by the second table of section 3, which is read here.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Programs: they may include every room of their own program.
PROGRAMS = {
    "provider": ("provider/", "client/", "proto/"),
    "server": ("server/", "client/"),
    "examples/framework": ("provider/", "client/"),
    "tests": ("provider/", "client/", "server/"),
}
ROOTS = ("app", "provider")  # their DEPS are what the program is made of
WHOLE_PROGRAM = ("provider/docsgen", "provider/main.cc", "server/app", "server/main.cc")
DRIVERS = ("store_memory", "store_sqlite", "artifact_filesystem", "build_process", "runtime_process")
SYSTEM = ("sys/", "net/", "netinet/", "arpa/", "linux/")


def libraries():
    """-> [(prefix of a header, rooms that may include it; None: all)] from docs/architecture.md."""
    with open(os.path.join(ROOT, "docs", "architecture.md"), encoding="utf-8") as file:
        table = file.read().partition("| library | headers | rooms |\n")[2].partition("\n\n")[0]
    found = []
    for headers, names in re.findall(r"^\| [^|`]* \| (`[^|]*) \| (.*) \|$", table, re.M):
        names = None if names == "all" else {n if n.endswith(".cc") else n.replace("/", "_") for n in re.findall(r"`([^`]+)`", names)}
        found += [(header, names) for header in re.findall(r"`([^`]+)`", headers)]
    return found


def library_problem(target, room, path, is_test, known):
    """room: of the file, or None; "" where the file at `path` may include <target>."""
    for prefix, allowed in known:
        if target.startswith(prefix):
            fine = allowed is None or room in allowed or path in allowed or (is_test and "tests" in allowed)
            return "" if fine else f"<{target}> is for {', '.join(sorted(allowed))} (docs/architecture.md, section 3)"
    return f"<{target}> is of no library that docs/architecture.md, section 3, names" if "/" in target and not target.startswith(SYSTEM) else ""


def rooms():
    """-> {name: (folder, deps, test_deps)} from the CMake files."""
    found = {}
    for top in ("client", "provider", "server"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                if name != "CMakeLists.txt" and not name.endswith(".cmake"):
                    continue
                text = open(os.path.join(folder, name), encoding="utf-8").read()
                text = re.sub(r"#.*", "", text)
                for call in re.findall(r"sless_room\(([^)]*)\)", text):
                    words = call.split()
                    room, lists, key = words[0], {}, None
                    for word in words[1:]:
                        if word in ("DIR", "DEPS", "LIBS", "TEST_DEPS", "TEST_LIBS", "SUBDIRS"):
                            key = word
                            lists[key] = []
                        elif key:
                            lists[key].append(word)
                    where = lists.get("DIR", ["${CMAKE_CURRENT_SOURCE_DIR}"])[0]
                    where = where.replace("${CMAKE_CURRENT_SOURCE_DIR}", folder)
                    found[room] = (os.path.relpath(where, ROOT), set(lists.get("DEPS", [])), set(lists.get("TEST_DEPS", [])))
    return found


def main():
    by_name = rooms()
    folders = sorted(((folder, name) for name, (folder, _, _) in by_name.items()), key=lambda x: -len(x[0]))

    def room_of(path):
        for folder, name in folders:
            if path.startswith(folder + "/"):
                return name
        return None

    problems, checked, known, used = [], 0, libraries(), {}
    if not known:
        problems.append("docs/architecture.md: section 3 has no table of libraries")
    for top in ("client", "provider", "server"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                if not name.endswith((".h", ".cc")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                room = room_of(path)
                is_test = path.endswith("_test.cc") or "/testing/" in path
                with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                    for number, line in enumerate(file, 1):
                        library = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
                        if library:
                            problem = library_problem(library.group(1), room, path, is_test, known)
                            problems += [f"{path}:{number}: {problem}"] if problem else []
                        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                        if not match:
                            continue
                        checked += 1
                        target = match.group(1)
                        other = room_of(target)
                        if not is_test:
                            used.setdefault(room, set()).add(other)
                        if other in DRIVERS and room != other and not is_test and path != "server/app/drivers.cc":
                            problems.append(f"{path}:{number}: {target} is a driver, which only server/app/drivers.cc may include")
                            continue
                        if room is None or path.startswith(WHOLE_PROGRAM):
                            allowed = PROGRAMS[top] if top in PROGRAMS else ("client/",)
                            if not target.startswith(allowed) and not target.endswith(".pb.h"):
                                problems.append(f"{path}:{number}: {target} is not of this program")
                            continue
                        if other is None:
                            if not target.endswith(".pb.h"):
                                problems.append(f"{path}:{number}: {target} is in no room")
                            elif room != "plugin":
                                problems.append(f"{path}:{number}: only the room plugin includes generated code")
                            continue
                        deps = by_name[room][1] | {room}
                        if is_test:
                            deps |= {d.removesuffix("_testing") for d in by_name[room][2]}
                        if other in deps:
                            continue
                        problems.append(f"{path}:{number}: room {room} may not include {target} (room {other}); "
                                        f"its DEPS: {', '.join(sorted(deps - {room})) or 'none'}")
    for name, (folder, deps, _) in sorted(by_name.items()):
        if name in ROOTS:
            continue
        problems += [f"{folder}: room {name} has {dep} in DEPS and includes nothing of it" for dep in sorted(deps - used.get(name, set()) - {"base"})]
    for problem in problems:
        print(problem)
    print(f"layering: {checked} includes, {len(by_name)} rooms, {len(problems)} problems")
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
