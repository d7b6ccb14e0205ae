#include <regex>

#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "client/transport/testing/http_imposter.h"
#include "server/build/process/testing/process_builder_fixture.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

// A registry that the server's settings name, and a proxy on the way to all others, which must not
// be asked.
class RegistryOfTheServer : public ProcessBuilderTest {
 protected:
  RegistryOfTheServer() {
    home_ = root_ + "/home";
    for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"})
      environment_[name] = elsewhere_.Url();
    for (const char* name : {"NO_PROXY", "no_proxy"}) environment_[name] = "127.0.0.1";
    elsewhere_.Handle([](const transport::RecordedRequest&) {
      return transport::ImposterAnswer{.status = 403, .body = "not this way"};
    });
    environment_["PIP_RETRIES"] = "0";
    environment_["npm_config_fetch_retries"] = "0";
  }
  void WriteAt(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  std::string Authorization() const {
    const auto requests = registry_.Requests();
    return requests.empty() ? "" : std::string(requests.back().headers.Get("authorization"));
  }
  std::string WithPassword() const {
    return "http://ci:sesame-open@127.0.0.1:" + std::to_string(registry_.Port());
  }
  void ServeWheel() {
    const std::string info = root_ + "/wheel/only_here-1.0.dist-info/";
    WriteAt(root_ + "/wheel/only_here.py", "here = True\n");
    WriteAt(info + "METADATA", "Metadata-Version: 2.1\nName: only-here\nVersion: 1.0\n");
    WriteAt(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
    WriteAt(info + "RECORD", "");
    ZipFolder(root_ + "/wheel", root_ + "/only.whl");
    registry_.On("GET", "/simple/only-here/",
                 {{.body = "<a href=\"/only_here-1.0-py3-none-any.whl\">x</a>",
                   .headers = {{"Content-Type", "text/html"}}}});
    registry_.On("GET", "/only_here-1.0-py3-none-any.whl",
                 {{.body = ReadAll(root_ + "/only.whl")}});
  }
  void ServeTarball() {
    WriteAt(root_ + "/tar/package/package.json", R"({"name":"only-here","version":"1.0.0"})");
    base::SpawnOptions tar;
    tar.command = {"/usr/bin/env", "tar",          "-czf",   root_ + "/only.tgz",
                   "-C",           root_ + "/tar", "package"};
    tar.environment = {"PATH=/usr/bin:/bin"};
    const auto done = base::RunCommand(tar, base::Deadline::After(clock_, seconds(20)), clock_);
    ASSERT_THAT(done, IsOk());
    ASSERT_TRUE(done->exit.ok()) << done->text;
    registry_.On(
        "GET", "/only-here",
        {{.body = R"({"name":"only-here","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":
                     {"name":"only-here","version":"1.0.0","dist":{"tarball":")" +
                  registry_.Url() + R"(/only.tgz"}}}})",
          .headers = {{"Content-Type", "application/json"}}}});
    registry_.On("GET", "/only.tgz", {{.body = ReadAll(root_ + "/only.tgz")}});
  }
  void BuildsFromIt(const std::string& runtime, const std::string& file,
                    const std::string& field = "dependencies") {
    Open();
    if (runtime == "nodejs20") {
      ServeTarball();
      Write("handler.js", "exports.handle = () => 1;\n");
      Write("package.json", "{\"" + field + "\":{\"only-here\":\"1.0.0\"}}");
    } else {
      ServeWheel();
      Write("handler.py", "def handle(event): return event\n");
      Write("requirements.txt", "only-here==1.0\n");
    }
    const auto built = Build(Zip(runtime));
    ASSERT_THAT(built, IsOk()) << testing::PrintToString(lines_);
    EXPECT_TRUE(fs::exists(built->deps_dir + file));
    EXPECT_EQ(elsewhere_.Requests().size(), 0u);
    EXPECT_THAT(lines_, testing::Not(Contains(HasSubstr("sesame-open"))));
  }

  const std::string kWheel = "/only_here.py", kPackage = "/node_modules/only-here/package.json";
  transport::HttpImposter registry_, elsewhere_;
};

// A package that looks around while pip builds it, and brings along what it saw.
constexpr const char* kLooksAround = R"(
import os, resource, stat, sys, zipfile

def get_requires_for_build_wheel(settings=None):
    return []

def listed(path):
    try:
        return sorted(os.listdir(path))
    except OSError as e:
        return [type(e).__name__]

def look():
    for line in open("/proc/self/mountinfo"):
        words = line.split()
        kind = words[words.index("-") + 1]
        yield "mount %s %s" % (words[4], words[5].split(",")[0])
    for path in ("/", "/etc", "/dev", "/build", "/build/home", "/var", "/sys", "/run", "/root", "/home", "/tmp", "/proc/acpi"):
        for name in listed(path):
            yield "file %s/%s" % (path.rstrip("/"), name)
    for name in os.environ:
        yield "env " + name
    yield "npm token %s" % any("npm-sesame" in v for v in os.environ.values())
    yield "uid %d gid %d" % (os.getuid(), os.getgid())
    yield "processes %d %d" % resource.getrlimit(resource.RLIMIT_NPROC)
    yield "core %d %d" % resource.getrlimit(resource.RLIMIT_CORE)
    for line in open("/proc/self/status"):
        if line.startswith(("CapEff", "CapBnd", "NoNewPrivs")):
            yield line.strip().replace("\t", " ")
    for fd in os.listdir("/proc/self/fd"):
        if int(fd) > 2:
            try:
                target = os.readlink("/proc/self/fd/" + fd)
            except OSError:
                continue
            if not target.startswith(("/proc/", "pipe:")):
                yield "fd " + target

def build_wheel(folder, settings=None, metadata=None):
    name = "look-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("look.txt", "\n".join(look()))
        wheel.writestr("look-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: look\nVersion: 1.0\n")
        wheel.writestr("look-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("look-1.0.dist-info/RECORD", "")
    return name
)";

TEST_F(RegistryOfTheServer, ABuildSeesThisAndNothingElse) {
  if (!fs::exists("/usr/bin/python3.11")) GTEST_SKIP() << "a Python elsewhere is shown as well";
  WriteAt(home_ + "/.npmrc", "//h/:_authToken=npm-sesame\n");
  WriteAt(home_ + "/.netrc", "machine h password other\n");
  WriteAt(home_ + "/.config/pip/pip.conf", "[global]\nno-index = true\n");
  environment_["npm_config__auth"] = "npm-sesame";
  Open();
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "./look\n");
  Write("look/pyproject.toml",
        "[build-system]\nrequires = []\nbuild-backend = \"look\"\nbackend-path = [\".\"]\n"
        "[project]\nname = \"look\"\nversion = \"1.0\"\n");
  Write("look/look.py", kLooksAround);
  const auto built = Build(Zip("python3.11"));
  ASSERT_THAT(built, IsOk()) << testing::PrintToString(lines_);
  const auto seen = base::Split(ReadAll(built->deps_dir + "/look.txt"), '\n');
  EXPECT_THAT(seen, Contains("mount / ro"));
  EXPECT_THAT(seen, Contains("mount /usr ro"));
  EXPECT_THAT(seen, Contains("mount /build rw"));
  EXPECT_THAT(seen, Contains("mount /build/layer rw"));
  EXPECT_THAT(seen, Contains("mount /var/task ro"));
  EXPECT_THAT(seen, Contains("mount /build/home/.config/pip/pip.conf ro"));
  EXPECT_THAT(seen, Contains("npm token False"));
  EXPECT_THAT(seen, Contains("uid 1000 gid 1000"));
  EXPECT_THAT(seen, Contains("processes 1024 1024"));
  EXPECT_THAT(seen, Contains("core 0 0"));
  EXPECT_THAT(seen, Contains("CapEff: 0000000000000000"));
  EXPECT_THAT(seen, Contains("NoNewPrivs: 1"));
  const std::regex may(
      "mount /(proc|tmp|dev/shm|build|build/layer|dev/(null|zero|full|random|urandom|tty|pts)) rw"
      "|mount /(proc/[^ ]*|usr[^ ]*|s?bin|lib[^ ]*|dev|var/task|) ro"
      "|mount /build/home/.config/pip/pip.conf ro"
      "|(mount|file) /etc/(resolv.conf|hosts|nsswitch.conf|host.conf|gai.conf|protocols|services"
      "|localtime|ld.so.(cache|conf|conf.d)|alternatives|mime.types|ssl(/certs|/openssl.cnf)?"
      "|ca-certificates|pki|passwd|group|pip.conf|xdg)( ro)?"
      "|file /(bin|build|dev|etc|lib|lib32|lib64|libx32|proc|sbin|tmp|usr|var)"
      "|file /dev/(core|fd|full|null|ptmx|pts|random|shm|std(err|in|out)|tty|urandom|zero)"
      "|file /build/(home|layer)|file /build/home/(.config|pip-.*|tmp.*)|file /var/task"
      "|file /(sys|run|root|home)/FileNotFoundError"
      "|env (PATH|HOME|LANG|TMPDIR|PWD|OLDPWD|PIP_.*|(HTTPS?|NO|https?|no)_(PROXY|proxy))"
      "|env (PYTHON(NOUSERSITE|PATH)|_?(PEP517|PYPROJECT_HOOKS)_.*)"  // pip's own
      "|npm token False|uid 1000 gid 1000|processes 1024 1024|core 0 0|NoNewPrivs: 1"
      "|Cap(Eff|Bnd): 0+|fd /build/home/.*");
  for (const auto& line : seen) EXPECT_TRUE(std::regex_match(line, may)) << line;
}

TEST_F(RegistryOfTheServer, ABackendThatPrintsItsEnvironmentPrintsNoPassword) {
  environment_["PIP_EXTRA_INDEX_URL"] = WithPassword() + "/simple";
  WriteAt(home_ + "/.config/pip/pip.conf", "[global]\nindex-url = " + WithPassword() + "/simple\n");
  Open();
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "# mine\n./mine\n");
  Write("mine/pyproject.toml",
        "[build-system]\nrequires = []\nbuild-backend = \"mine\"\nbackend-path = [\".\"]\n");
  Write("mine/mine.py",
        "import os\nprint(dict(os.environ))\n"
        "print(open(os.path.expanduser('~/.config/pip/pip.conf')).read().split('@')[0][-11:])\n"
        "raise RuntimeError(os.environ['PIP_EXTRA_INDEX_URL'])\n");
  const auto built = Build(Zip("python3.11"));
  ASSERT_THAT(built, IsError(Code::kFailedPrecondition,
                             AllOf(HasSubstr("RuntimeError: http://***@127.0.0.1"),
                                   testing::Not(HasSubstr("sesame-open")))));
  EXPECT_EQ(built.error().source.line, 2);
  EXPECT_THAT(lines_, Contains(HasSubstr("'PIP_EXTRA_INDEX_URL': 'http://***@127.0.0.1")));
  EXPECT_THAT(lines_, testing::Not(Contains(HasSubstr("sesame-open"))));
  EXPECT_THAT(built.error().source.log_tail, testing::Not(Contains(HasSubstr("sesame-open"))));
}

TEST_F(RegistryOfTheServer, ByPipConf) {
  WriteAt(home_ + "/.config/pip/pip.conf", "[global]\nindex-url = " + WithPassword() + "/simple\n");
  BuildsFromIt("python3.11", kWheel);
  EXPECT_THAT(Authorization(), testing::StartsWith("Basic "));
}

TEST_F(RegistryOfTheServer, ByTheOlderPipConf) {
  WriteAt(home_ + "/.pip/pip.conf", "[global]\nindex-url = " + registry_.Url() + "/simple\n");
  BuildsFromIt("python3.11", kWheel);
}

TEST_F(RegistryOfTheServer, ByAFileThatTheEnvironmentNames) {
  WriteAt(root_ + "/company/pip.conf",
          "[install]\nno-index = true\nfind-links =\n    " + root_ + "/wheels\n");
  environment_["PIP_CONFIG_FILE"] = root_ + "/company/pip.conf";
  ServeWheel();
  fs::create_directories(root_ + "/wheels");
  fs::copy_file(root_ + "/only.whl", root_ + "/wheels/only_here-1.0-py3-none-any.whl");
  BuildsFromIt("python3.11", kWheel);
}

TEST_F(RegistryOfTheServer, ByTheEnvironment) {
  environment_["PIP_INDEX_URL"] = WithPassword() + "/simple";
  BuildsFromIt("python3.11", kWheel);
}

TEST_F(RegistryOfTheServer, ByNpmrc) {
  const std::string token = "//127.0.0.1:" + std::to_string(registry_.Port()) + "/:_authToken";
  WriteAt(home_ + "/.npmrc", "registry=" + registry_.Url() + "/\n" + token + "=sesame-open\n");
  BuildsFromIt("nodejs20", kPackage);
  EXPECT_EQ(Authorization(), "Bearer sesame-open");
}

TEST_F(RegistryOfTheServer, ByAnNpmrcThatTheEnvironmentNames) {
  WriteAt(root_ + "/company/npmrc", "registry=" + registry_.Url() + "/\n");
  environment_["NPM_CONFIG_USERCONFIG"] = root_ + "/company/npmrc";
  BuildsFromIt("nodejs20", kPackage);
}

TEST_F(RegistryOfTheServer, ByTheEnvironmentOfNpm) {
  environment_["npm_config_registry"] = registry_.Url();
  BuildsFromIt("nodejs20", kPackage);
}

TEST_F(RegistryOfTheServer, PeersAloneAreInstalledToo) {
  environment_["npm_config_registry"] = registry_.Url();
  BuildsFromIt("nodejs20", kPackage, "peerDependencies");
}

}  // namespace
}  // namespace sless::build
