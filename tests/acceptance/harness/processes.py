"""The processes of this machine as /proc shows them, and which lie below which."""
import os


def table():
    """-> {pid: (parent's pid, state letter)}"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]  # the name before may hold spaces
        except OSError:
            continue  # it ended in between
        found[int(pid)] = (int(parent), state)
    return found


def below(pid):
    """-> pids of all that runs under this process, itself left out; parents come before their children."""
    parents, found, todo = table(), [], [pid]
    while todo:
        parent = todo.pop()
        for child in (c for c, (p, _) in parents.items() if p == parent):
            found.append(child)
            todo.append(child)
    return found
