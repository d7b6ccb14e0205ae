"""What a function sees of the machine: mounts, files, environment, sockets, limits. What a build sees is a unit test of server/build. No terraform."""
import os
import re
import socket
import unittest

from tests.acceptance.test_server import ServerCase

LOOK = r'''
import os, resource, socket

def listed(path):
    try:
        return sorted(os.listdir(path))
    except OSError as e:
        return [type(e).__name__]

def look():
    for line in open("/proc/self/mountinfo"):
        words = line.split()
        yield "mount %s %s" % (words[4], words[5].split(",")[0])
    for path in ("/", "/etc", "/dev", "/var", "/var/task", "/opt", "/sless", "/sys", "/run", "/root", "/home", "/tmp", "/dev/shm"):
        for name in listed(path):
            yield "file %s/%s" % (path.rstrip("/"), name)
    for name in os.environ:
        yield "env " + name
    yield "uid %d gid %d" % (os.getuid(), os.getgid())
    yield "core %d %d" % resource.getrlimit(resource.RLIMIT_CORE)
    yield "files %d %d" % resource.getrlimit(resource.RLIMIT_NOFILE)
    yield "processes %d %d" % resource.getrlimit(resource.RLIMIT_NPROC)
    for line in open("/proc/self/status"):
        if line.startswith(("CapEff", "CapBnd", "NoNewPrivs")):
            yield " ".join(line.split())
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield "process " + open("/proc/%s/comm" % pid).read().strip()
        except OSError:
            pass

def handle(event):
    if "connect" not in event:
        return list(look())
    try:
        socket.socket(socket.AF_UNIX).connect("\0" + event["connect"])
        return "reached"
    except OSError as e:
        return type(e).__name__
'''

# Each line that may be seen; what is not matched is too much.
MAY = re.compile(
    r"mount /(proc|tmp|dev/shm|dev/(null|zero|full|random|urandom|tty|pts)) rw"
    r"|mount /(proc/\S*|usr\S*|s?bin|lib\S*|dev|var/task|sless/(runner|worker\.py)|) ro"
    r"|(mount|file) /etc/(resolv\.conf|hosts|nsswitch\.conf|host\.conf|gai\.conf|protocols|services|localtime|ld\.so\.(cache|conf|conf\.d)"
    r"|alternatives|mime\.types|ssl(/certs|/openssl\.cnf)?|ca-certificates|pki\S*|passwd|group)( ro)?"
    r"|file /(bin|dev|etc|lib|lib32|lib64|libx32|proc|sbin|sless|tmp|usr|var)"
    r"|file /dev/(core|fd|full|null|ptmx|pts|random|shm|std(err|in|out)|tty|urandom|zero)"
    r"|file /var/task|file /var/task/handler\.py|file /sless/(runner|worker\.py)"
    r"|file /(opt|sys|run|root|home)/FileNotFoundError"
    r"|env (PATH|HOME|LANG|TZ|LC_CTYPE|PWD|OWN|SLESS_(NAMESPACE|FUNCTION|REVISION|RUNTIME|MEMORY_MB|TIMEOUT_SEC))"
    r"|uid 1000 gid 1000|core 0 0|files \d+ 4096|processes \d+ \d+|NoNewPrivs: 1|Cap(Eff|Bnd): 0+"
    r"|process (bwrap|runner|sless-runner|python3\.11|python3)")
MUST = {"mount / ro", "mount /usr ro", "mount /var/task ro", "mount /sless/runner ro", "mount /tmp rw", "mount /dev/shm rw", "file /var/task/handler.py",
        "env OWN", "uid 1000 gid 1000", "core 0 0", "NoNewPrivs: 1", "CapEff: 0000000000000000"}


# A package whose build leaves a process behind, which puts a link to a folder of the host in place of the layer that pip installs to.
SWAP = r'''
import os, time, zipfile

def swap():
    for _ in range(4000):
        try:
            if os.path.exists("/build/layer/evil-1.0.dist-info/METADATA"):
                os.rename("/build/layer", "/build/away")
                os.symlink("HOST", "/build/layer")
                return
        except OSError:
            pass
        time.sleep(0.005)

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "evil-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("evil/__init__.py", "")
        wheel.writestr("evil-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        wheel.writestr("evil-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("evil-1.0.dist-info/RECORD", "")
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        swap()
        os._exit(0)
    return name
'''
LIST_LAYER = "import os\ndef handle(event):\n    return sorted(os.listdir('/opt/deps'))\n"


class Sandbox(ServerCase):
    def invoke(self, event):
        answer = self.plane.api("/v1/namespaces/default/functions/f/invoke", "POST", event)
        self.assertEqual(200, answer.status, answer)
        return answer.json()

    def test_a_function_sees_this_and_nothing_else(self):
        if not os.path.exists("/usr/bin/python3.11"):
            self.skipTest("a Python outside of /usr is shown as well")
        self.function("f", LOOK, environment={"OWN": "1"})
        seen = self.invoke({})
        self.assertEqual(set(), MUST - set(seen))
        self.assertEqual([], [line for line in seen if not MAY.fullmatch(line)])

    def test_it_reaches_no_abstract_socket_of_the_host(self):
        release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
        if release < (6, 12):
            self.skipTest("needs Linux 6.12")
        name = f"sless-test-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("\0" + name)
            listener.listen()
            self.function("f", LOOK)
            self.assertEqual("PermissionError", self.invoke({"connect": name}))

    def test_a_build_shows_its_function_no_folder_of_the_host(self):
        tree = self.upload({
            "handler.py": LIST_LAYER,
            "requirements.txt": "./evil\n",
            "evil/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n',
            "evil/back.py": SWAP.replace("HOST", self.plane.data),
        })
        made = self.put("functions", "f", {"runtime": "python3.11", "source": {"type": "dir", "path": "src", "hash": tree}})
        thing = self.wait("functions", "f", made["metadata"]["generation"], timeout=120)
        layers = os.path.join(self.plane.data, "layers", "deps")
        self.assertEqual([], [name for name in os.listdir(layers) if os.path.islink(os.path.join(layers, name))])
        if thing["status"]["phase"] == "Ready":
            self.assertEqual(["evil", "evil-1.0.dist-info"], self.invoke({}))


if __name__ == "__main__":
    unittest.main()
