"""The processes of this machine as /proc shows them, and which lie below which."""
import collections
import os

Process = collections.namedtuple("Process", "parent state name")  # pid, letter, the first 15 bytes of the program's name


def table():
    """-> {pid: Process} of all that run now."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                start, _, rest = file.read().rpartition(")")  # the name may hold spaces and brackets
        except OSError:
            continue  # it ended in between
        state, parent = rest.split()[:2]
        found[int(pid)] = Process(int(parent), state, start.partition("(")[2])
    return found


def below(pid):
    """-> pids of all that runs under this process, itself left out; parents come before their children."""
    processes, found, todo = table(), [], [pid]
    while todo:
        parent = todo.pop()
        for child in (c for c, process in processes.items() if process.parent == parent):
            found.append(child)
            todo.append(child)
    return found
