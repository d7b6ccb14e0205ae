"""Content hash and hostile archives with a real terraform: packing never matters, every byte and the executable bit do."""
import io
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import tarfile
import time
import unittest
import zipfile

from tests.acceptance.harness.case import Case, both
from tests.acceptance.harness.terraform_cli import Done
from tests.acceptance.test_interrupt import children

PY = b'def handle(event, context):\n    return "one"\n'
FILES = {"handler.py": PY, "lib/util.py": b"X = 1\n", b"data/\xc3\xa4.txt".decode(): b"text\n" * 1000, "bin/tool.sh": b"#!/bin/sh\necho hi\n"}


@both
class Packing(Case):
    def setUp(self):
        super().setUp()
        for name, content in FILES.items():
            self.ws.write("fn/" + name, content, 0o755 if name.startswith("bin/") else 0o644)

    def use(self, source):
        self.ws.config('resource "sless_function" "f" {\n  name = "f1"\n  runtime = "python3.11"\n  %s\n}\n' % source)

    def zip(self, name, *flags):
        path = self.ws.path(name)
        if os.path.exists(path):
            os.remove(path)
        subprocess.run(["zip", "-q", "-r", *flags, path, "."], cwd=self.ws.path("fn"), check=True, timeout=60)

    def test_a_function_beside_its_configuration(self):
        """State (with secrets), variables and plugins lie in the folder that is the source."""
        self.ws.write("handler.py", "import os\ndef handle(event):\n    return sorted(name for _, folders, files in os.walk('.') for name in folders + files)\n")
        self.ws.write("terraform.tfvars", 'word = "secret"\n')
        shutil.rmtree(self.ws.path("fn"))
        self.ws.config('variable "word" {}\nresource "terraform_data" "d" {\n  input = var.word\n}\n'
                       'resource "sless_function" "f" {\n  name = "f1"\n  runtime = "python3.11"\n  source_dir = path.module\n}\n')
        for _ in range(2):
            self.ws.apply()
            self.assert_plan_empty()
            answer = self.plane.api(f"/v1/namespaces/{self.ns}/functions/f1/invoke", "POST", {})
            self.assertEqual(["handler.py", "main.tf"], answer.json(), answer)

    def test_no_packing_matters(self):
        self.use('source_dir = "fn"')
        self.ws.apply()
        revision = self.ws.state("sless_function.f")["revision"]
        for name in FILES:
            os.utime(self.ws.path("fn/" + name), (1, 1))
        self.assertEqual({}, self.ws.plan(), "other times")
        self.zip("a.zip", "-0")
        self.use('source_zip = "a.zip"')
        self.assert_one_change("sless_function.f", "source_dir", "source_zip")
        self.ws.apply()
        self.assert_plan_empty()
        self.zip("a.zip", "-9")
        self.assertEqual({}, self.ws.plan(), "zip -9")
        self.zip("a.zip", "-X", "-D")
        self.assertEqual({}, self.ws.plan(), "no extra fields, no folder entries")
        for order in (sorted(FILES), sorted(FILES, reverse=True)):
            with zipfile.ZipFile(self.ws.path("a.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
                for name in order:
                    info = zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6))
                    info.external_attr = (0o100777 if name.startswith("bin/") else 0o100600) << 16
                    archive.writestr(info, FILES[name])
            self.assertEqual({}, self.ws.plan(), f"python's zipfile, other modes and times, order {order[0]}")
        # Ignored files are no content, in a folder and in a zip.
        for junk in ("fn/__pycache__/handler.cpython-311.pyc", "fn/.git/HEAD", "fn/.DS_Store"):
            self.ws.write(junk, b"junk")
        self.use('source_dir = "fn"')
        self.ws.apply()
        self.zip("a.zip")
        self.use('source_zip = "a.zip"')
        self.ws.apply()
        self.assertEqual(revision, self.ws.state("sless_function.f")["revision"], "nothing was ever rebuilt")

    def test_no_umask_matters(self):
        # As two people would check it out: the folders' modes differ too, and a zip of each has all of them.
        for name, mask in (("open", 0o000), ("private", 0o077)):
            subprocess.run(["sh", "-ec", f"umask {mask:03o}; mkdir -p {name}/lib {name}/data {name}/bin; "
                            f"for file in $(cd fn; find . -type f); do cat fn/$file > {name}/$file; done; chmod +x {name}/bin/tool.sh; "
                            f"cd {name}; zip -q -r ../{name}.zip ."], cwd=self.ws.work, check=True, timeout=60)
        modes = {name: [stat.S_IMODE(os.stat(self.ws.path(name + below)).st_mode) for below in ("", "/lib", "/handler.py", "/bin/tool.sh")]
                 for name in ("open", "private")}
        self.assertEqual({"open": [0o777, 0o777, 0o666, 0o777], "private": [0o700, 0o700, 0o600, 0o700]}, modes)
        self.use('source_dir = "fn"')
        self.ws.apply()
        before = self.ws.state("sless_function.f")
        for source in ('source_dir = "open"', 'source_dir = "private"', 'source_zip = "open.zip"', 'source_zip = "private.zip"'):
            with self.subTest(source):
                self.use(source)
                self.assert_one_change("sless_function.f", *({"source_dir"} | {source.split()[0]}))
        self.ws.apply()
        after = self.ws.state("sless_function.f")
        self.assertEqual([before[k] for k in ("source_hash", "revision", "last_built_at")], [after[k] for k in ("source_hash", "revision", "last_built_at")])
        # The other way round: what was packed with all bits set is the folder without them.
        self.use('source_dir = "private"')
        self.assert_one_change("sless_function.f", "source_dir", "source_zip")
        # And a provider that runs under such a umask itself.
        for mask in (0o077, 0o000):
            before = os.umask(mask)
            try:
                self.assert_one_change("sless_function.f", "source_dir", "source_zip")
            finally:
                os.umask(before)
        # And one after the other at the same path.
        for kind, end in (("source_dir", ""), ("source_zip", ".zip")):
            with self.subTest(kind):
                os.rename(self.ws.path("open" + end), self.ws.path("same" + end))
                self.use(f'{kind} = "same{end}"')
                self.ws.apply()
                os.rename(self.ws.path("same" + end), self.ws.path("open" + end))
                os.rename(self.ws.path("private" + end), self.ws.path("same" + end))
                self.assert_plan_empty()

    def test_one_bit_matters(self):
        self.use('source_dir = "fn"')
        self.ws.apply()
        path = self.ws.path("fn/lib/util.py")
        os.chmod(path, 0o755)
        self.assertIn("source_hash", self.ws.plan()["sless_function.f"].attributes)
        os.chmod(path, 0o600)
        self.assertEqual({}, self.ws.plan(), "only the executable bit counts")
        times = os.stat(path)
        self.ws.write("fn/lib/util.py", b"X = 2\n")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.assertIn("source_hash", self.ws.plan()["sless_function.f"].attributes, "same size, same time, other bytes")

    def test_slessignore(self):
        self.ws.write("fn/.slessignore", "*.txt\n!keep.txt\n/notes/\n")
        self.ws.write("fn/keep.txt", "keep")
        self.use('source_dir = "fn"')
        self.ws.apply()
        self.ws.write("fn/more.txt", "ignored")
        self.ws.write("fn/notes/deep/file", "ignored")
        self.assertEqual({}, self.ws.plan())
        self.ws.write("fn/keep.txt", "other")
        self.assertIn("source_hash", self.ws.plan()["sless_function.f"].attributes)


def archive(entries, compression=zipfile.ZIP_DEFLATED):
    """entries: [(name or ZipInfo, bytes)] -> bytes of a zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        for name, content in entries:
            made.writestr(name, content)
    return out.getvalue()


def link(name, target):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def crowded(count):
    """A zip of so many empty files, named after their numbers. zipfile would take half a minute for a million."""
    local, central, files, directory = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), bytearray(), bytearray()
    for i in range(count):
        name = b"f%07d" % i
        directory += central.pack(b"PK\1\2", 20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, len(files)) + name
        files += local.pack(b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) + name
    at, size = len(files), len(directory)
    return b"".join((files, directory, struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, at),
                     struct.pack("<4sLQL", b"PK\6\7", 0, at + size, 1), struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, size, at, 0)))


def peak(pid):
    """-> MiB that a process held at most so far; 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmHWM:\s+(\d+)|$", file.read()).group(1) or 0) // 1024
    except OSError:
        return 0


def renamed(data, old, new):
    """Replaces a name of the same length in headers and directory."""
    assert len(old) == len(new)
    return data.replace(old, new)


def tar_named_zip():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        info = tarfile.TarInfo("handler.py")
        info.size = len(PY)
        made.addfile(info, io.BytesIO(PY))
    return out.getvalue()


def encrypted():
    data = bytearray(archive([("handler.py", PY)], zipfile.ZIP_STORED))
    struct.pack_into("<H", data, 6, 1)
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<H", data, at + 8, 1)
    return bytes(data)


def duplicate():
    return renamed(archive([("handler.py", PY), ("handleX.py", b"x = 1\n")]), b"handleX.py", b"handler.py")


HOSTILE = {
    "parent": (archive([("handler.py", PY), ("../evil.py", b"x")]), "../evil.py"),
    "deep_parent": (archive([("handler.py", PY), ("a/../../evil.py", b"x")]), "evil.py"),
    "absolute": (archive([("handler.py", PY), ("/etc/evil", b"x")]), "/etc/evil"),
    "link_out": (archive([("handler.py", PY), link("out", "/etc/passwd")]), "out"),
    "link_then_write": (archive([("handler.py", PY), link("dir", "/tmp"), ("dir/evil", b"x")]), "dir"),
    "duplicate": (duplicate(), "handler.py"),
    "not_utf8": (renamed(archive([("handler.py", PY), ("nameXX.txt", b"x")]), b"nameXX.txt", b"name\xff\xfe.txt"), "UTF-8"),
    "encrypted": (encrypted(), "encrypted"),
    "truncated": (archive([("handler.py", PY)])[:-30], "truncated"),
    "tar": (tar_named_zip(), "tar"),
    "empty_file": (b"", "empty"),
    "empty_zip": (archive([]), "the archive is empty"),
    "bomb": (archive([("handler.py", PY), ("zeros", bytes(300 * 1024 * 1024))]), "zeros"),
    "not_a_zip": (b"hello, I am text\n" * 10, "zip"),
}


@both
class Hostile(Case):
    def plan(self, data):
        self.ws.write("a.zip", data)
        self.ws.config('resource "sless_function" "f" {\n  name = "f1"\n  runtime = "python3.11"\n  source_zip = "a.zip"\n}\n')

    def test_refused_at_plan_with_the_entry(self):
        for name, (data, text) in HOSTILE.items():
            with self.subTest(name):
                self.plan(data)
                self.assert_says(self.ws.plan_fails(), text, "source_zip")

    def test_refused_by_the_server_too(self):
        digest = "sha256:" + "0" * 64
        for name, (data, text) in HOSTILE.items():
            with self.subTest(name):
                answer = self.plane.api(f"/v1/namespaces/{self.ns}/code/{digest}", "PUT", data, {"Content-Type": "application/zip"})
                self.assertIn(answer.status, (400, 413, 422), answer)
                if name != "bomb":
                    self.assertIn(text.lower(), answer.text.lower())
        self.assertEqual(404, self.plane.api(f"/v1/namespaces/{self.ns}/code/{digest}", "HEAD").status)

    def test_a_million_entries_are_not_even_read(self):
        data = crowded(1_000_001)
        self.plan(data)
        process, start, most = self.ws.start("plan", "-input=false"), time.monotonic(), 0
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        while process.poll() is None:
            most = max([most, *(peak(pid) for pid, command in children(process.pid).items() if "terraform-provider-sless" in command)])
            self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(1, process.returncode)
        self.assert_says(Done([], 1, *process.communicate(), 0), "has 1000001 entries, at most 50000 are allowed", "source_zip")
        self.assertTrue(0 < most < len(data) >> 20, most)

    def test_an_upload_of_as_many_entries_as_fit_is_refused_unread(self):
        data, before = crowded(700_000), peak(self.plane.process.pid)
        start = time.monotonic()
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/code/sha256:{'0' * 64}", "PUT", data, {"Content-Type": "application/zip"})
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(400, answer.status, answer)
        self.assertIn("has 700000 entries, at most 50000 are allowed", answer.text)
        self.assertLess(peak(self.plane.process.pid) - before, (len(data) >> 20) // 2)

    def test_zip64_and_utf8_are_fine(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
            with made.open(zipfile.ZipInfo("handler.py"), "w", force_zip64=True) as entry:
                entry.write(PY)
            made.writestr("données/ü.txt", "x")
        self.plan(out.getvalue())
        self.ws.apply()
        self.assert_plan_empty()

    def test_wrong_digest_is_refused(self):
        answer = self.plane.api(f"/v1/namespaces/{self.ns}/code/sha256:{'1' * 64}", "PUT", archive([("handler.py", PY)]))
        self.assertEqual(422, answer.status, answer)
        self.assertIn("1" * 64, answer.text)


class Handlers(Case):
    def test_found_at_plan(self):
        rows = [
            ("python3.11", "handler.handle", "other.py", "def handle(e): pass\n", "handler.py"),
            ("python3.11", "handler.handle", "handler.py", "def handel(e): pass\n", "handel"),
            ("nodejs20", "handler.handle", "handler.js", "exports.handel = () => 1\n", "handel"),
            ("nodejs20", "handler.handle", "handler.py", "def handle(e): pass\n", "handler.js"),
            ("python3.11", "handler.handle", "top/handler.py", "def handle(e): pass\n", "top/handler.handle"),
            ("python3.1", "handler.handle", "handler.py", "def handle(e): pass\n", "python3.11"),
        ]
        for runtime, entrypoint, file, text, expected in rows:
            with self.subTest(expected + " " + file):
                shutil.rmtree(self.ws.path("fn"), ignore_errors=True)
                self.ws.write("fn/" + file, text)
                self.ws.config(f'resource "sless_function" "f" {{\n  name = "f1"\n  runtime = "{runtime}"\n  entrypoint = "{entrypoint}"\n  source_dir = "fn"\n}}\n')
                self.assert_says(self.ws.plan_fails(), expected)


if __name__ == "__main__":
    unittest.main()
