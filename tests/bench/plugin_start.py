#!/usr/bin/env python3
"""How long a provider takes from its start to its handshake line, and until it serves, and how much memory it holds then.

Starts each program as Terraform does (cookie, a client certificate for automatic TLS, pipes), in turns, so that what else the
machine does falls on all of them alike. "serving" is the first frame of HTTP/2 that comes back over TLS: a host sends its first
call then, so nothing that was put off to after the handshake line is hidden. Processor time and peak memory are read there;
memory at the line in starts of their own, in which the line has to wait for a full pipe.

    plugin_start.py build/bin/terraform-provider-sless [--rounds 30] [--peer PROGRAM | --build-peer] [--limit-ms 10 --limit-mb 12]

--build-peer builds a provider of the same size with the usual Go framework in a temporary folder (needs `go` and its module proxy);
where that does not work it says why and measures without a peer.
"""

import argparse
import base64
import fcntl
import os
import pathlib
import select
import signal
import socket
import ssl
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


def first_frame(line: bytes, folder: pathlib.Path) -> None:
    """Connects as the host does, with the certificate of the line as the only one trusted."""
    _, _, network, address, _, certificate = line.decode().strip().split("|")[:6]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=base64.b64decode(certificate + "=" * (-len(certificate) % 4)))
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    if network == "unix":
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(20)
        plain.connect(address)
    else:
        plain = socket.create_connection(address.rsplit(":", 1), 20)
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        if len(connection.recv(9)) == 0:
            raise RuntimeError("the provider closed the connection")


def start_once(program: str, environment: dict, folder: pathlib.Path) -> dict:
    """Milliseconds to the handshake line and to serving; processor milliseconds and peak resident kB then."""
    began = time.perf_counter()
    process = subprocess.Popen([program], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        ready, _, _ = select.select([process.stdout], [], [], 20)
        line = process.stdout.readline() if ready else b""
        line_ms = (time.perf_counter() - began) * 1000
        if not line.startswith(b"1|6|") and not line.startswith(b"1|5|"):
            raise RuntimeError(f"{program}: no handshake line but {line!r}")
        first_frame(line, folder)
        return {"line": line_ms, "serving": (time.perf_counter() - began) * 1000,
                "cpu": cpu_ms(process.pid), "memory": peak_kb(process.pid)}
    finally:
        # The peer ignores SIGTERM's meaning for us; nothing is lost by a kill here, the socket lies in our folder.
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def held_kb(program: str, environment: dict) -> int:
    """Peak resident kB of a program that is about to write its line: the pipe has no room for it yet."""
    out, into = os.pipe()
    size = fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    os.write(into, bytes(size))
    process = subprocess.Popen([program], env=environment, stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.DEVNULL)
    os.close(into)
    try:
        seen = [-1, 0]
        for _ in range(100):
            if seen[-1] == seen[-2]:
                break
            time.sleep(0.1)
            seen.append(peak_kb(process.pid))
        # That it was the line which waited.
        os.read(out, size)
        ready, _, _ = select.select([out], [], [], 20)
        if not ready or b"|grpc|" not in os.read(out, size):
            raise RuntimeError(f"{program}: no handshake line")
        return seen[-1]
    finally:
        process.kill()
        process.wait()
        os.close(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--peer")
    parser.add_argument("--build-peer", action="store_true")
    parser.add_argument("--limit-ms", type=float, help="fail where any start of a program (not the peer) takes longer to its line")
    parser.add_argument("--limit-mb", type=float, help="fail where the memory of a program (not the peer) at its line is above")
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
        starts = {p: [] for p in everyone}
        for program in everyone:
            start_once(program, environment, folder)  # into the page cache
        for _ in range(options.rounds):
            for program in everyone:
                starts[program].append(start_once(program, environment, folder))

        at_line = {program: max(held_kb(program, environment) for _ in range(5)) / 1024 for program in everyone}

        def median(program: str, what: str) -> float:
            return statistics.median(start[what] for start in starts[program])

        failed = False
        print(f"{'program':<28}{'line: min':>10}{'median':>8}{'max':>7}{'vs peer':>9}"
              f"{'serving: median':>17}{'vs peer':>9}{'cpu ms':>8}{'MB: line':>10}{'serving':>9}{'file MB':>9}")
        for program in everyone:
            lines = [start["line"] for start in starts[program]]
            megabytes = max(start["memory"] for start in starts[program]) / 1024
            ratio = {what: f"{median(program, what) / median(peer, what):.2f}" if peer else "-" for what in ("line", "serving")}
            print(f"{os.path.basename(program):<28}{min(lines):>10.1f}{median(program, 'line'):>8.1f}{max(lines):>7.1f}{ratio['line']:>9}"
                  f"{median(program, 'serving'):>17.1f}{ratio['serving']:>9}{median(program, 'cpu'):>8.1f}{at_line[program]:>10.1f}{megabytes:>9.1f}"
                  f"{os.path.getsize(program) / 1e6:>9.1f}")
            if program != peer:
                failed |= options.limit_ms is not None and max(lines) > options.limit_ms
                failed |= options.limit_mb is not None and at_line[program] > options.limit_mb
        if failed:
            print("above the limit", file=sys.stderr)
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
