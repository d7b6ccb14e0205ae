#!/usr/bin/env python3
"""How long a provider takes from its start to its handshake line, and how much memory it holds then.

Starts each program as Terraform does (cookie, a client certificate for automatic TLS, pipes), in turns, so that what else the
machine does falls on all of them alike. Prints minimum and median milliseconds, resident memory (VmHWM) and the ratio to the peer.

    plugin_start.py build/bin/terraform-provider-sless [--rounds 30] [--peer PROGRAM | --build-peer] [--limit-ms 10 --limit-mb 16]

--build-peer builds a provider of the same size with the usual Go framework in a temporary folder (needs `go` and its module proxy);
where that does not work it says why and measures without a peer.
"""

import argparse
import os
import pathlib
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import go_peer

COOKIE = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"


def client_certificate(folder: pathlib.Path) -> str:
    """A P-521 certificate as the host makes one for each start."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521", "-nodes", "-keyout",
         folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/O=Host/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-days", "2"],
        check=True, capture_output=True, timeout=60)
    return (folder / "cert.pem").read_text()


def peak_kb(pid: int) -> int:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0


def cpu_ms(pid: int) -> float:
    """Time on a processor of all threads so far: unlike the clock it does not depend on what else the machine does."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e6


def start_once(program: str, environment: dict):
    """Milliseconds to the handshake line, peak resident kB and processor milliseconds then."""
    began = time.perf_counter()
    process = subprocess.Popen([program], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        ready, _, _ = select.select([process.stdout], [], [], 20)
        line = process.stdout.readline() if ready else b""
        took = (time.perf_counter() - began) * 1000
        memory = peak_kb(process.pid)
        cpu = cpu_ms(process.pid)
        if not line.startswith(b"1|6|") and not line.startswith(b"1|5|"):
            raise RuntimeError(f"{program}: no handshake line but {line!r}")
        return took, memory, cpu
    finally:
        # The peer ignores SIGTERM's meaning for us; nothing is lost by a kill here, the socket lies in our folder.
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--peer")
    parser.add_argument("--build-peer", action="store_true")
    parser.add_argument("--limit-ms", type=float, help="fail where the median of a program (not the peer) is above")
    parser.add_argument("--limit-mb", type=float, help="fail where the memory of a program (not the peer) is above")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="plugin-start-") as temp:
        folder = pathlib.Path(temp)
        programs = [os.path.abspath(p) for p in options.programs]
        peer = options.peer
        if options.build_peer and peer is None:
            built = go_peer.build(folder / "peer")
            peer = str(built) if built else None
        environment = {
            "PATH": os.environ.get("PATH", ""), "HOME": temp, "TMPDIR": temp, "TF_PLUGIN_MAGIC_COOKIE": COOKIE,
            "PLUGIN_PROTOCOL_VERSIONS": "6,5", "PLUGIN_MIN_PORT": "10000", "PLUGIN_MAX_PORT": "25000",
            "PLUGIN_CLIENT_CERT": client_certificate(folder),
        }
        everyone = programs + ([peer] if peer else [])
        times = {p: [] for p in everyone}
        memory = {p: [] for p in everyone}
        cpu = {p: [] for p in everyone}
        for program in everyone:
            start_once(program, environment)  # into the page cache
        for _ in range(options.rounds):
            for program in everyone:
                took, peak, busy = start_once(program, environment)
                cpu[program].append(busy)
                times[program].append(took)
                memory[program].append(peak)

        failed = False
        peer_median = statistics.median(times[peer]) if peer else None
        print(f"{'program':<34}{'min ms':>8}{'median':>8}{'max':>8}{'cpu ms':>8}{'VmHWM MB':>10}{'file MB':>9}{'vs peer':>9}")
        for program in everyone:
            median = statistics.median(times[program])
            megabytes = max(memory[program]) / 1024
            ratio = f"{median / peer_median:.2f}" if peer_median else "-"
            print(f"{os.path.basename(program):<34}{min(times[program]):>8.1f}{median:>8.1f}{max(times[program]):>8.1f}"
                  f"{statistics.median(cpu[program]):>8.1f}{megabytes:>10.1f}{os.path.getsize(program) / 1e6:>9.1f}{ratio:>9}")
            if program != peer:
                failed |= options.limit_ms is not None and median > options.limit_ms
                failed |= options.limit_mb is not None and megabytes > options.limit_mb
        if failed:
            print("above the limit", file=sys.stderr)
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
