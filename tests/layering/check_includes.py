#!/usr/bin/env python3
"""Fails when an #include breaks the dependency rule of docs/architecture.md, section 3.

The rule is the DEPS list of each sless_room() call in CMake, so that it is stated once; here every quoted #include of a room's files is
held against it. Tests and testing/ folders may also include what TEST_DEPS names and any testing/ folder.
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
WHOLE_PROGRAM = ("provider/docsgen", "provider/main.cc", "server/app", "server/main.cc")


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

    problems, checked = [], 0
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
                        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                        if not match:
                            continue
                        checked += 1
                        target = match.group(1)
                        other = room_of(target)
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
                        # Options of a room are data: config may read them all.
                        if room == "config" and target.endswith("/options.h"):
                            continue
                        problems.append(f"{path}:{number}: room {room} may not include {target} (room {other}); "
                                        f"its DEPS: {', '.join(sorted(deps - {room})) or 'none'}")
    for problem in problems:
        print(problem)
    print(f"layering: {checked} includes, {len(by_name)} rooms, {len(problems)} problems")
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
