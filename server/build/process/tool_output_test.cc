#include "server/build/process/tool_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/base/strings.h"

namespace sless::build {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// What pip 23.0 and 23.2 and npm 11 printed, shortened where they repeat themselves.
struct Case {
  const char* name;
  Tool tool;
  const char* manifest;
  const char* output;
  const char* message;
  int line;
};

class Explains : public testing::TestWithParam<Case> {};

TEST_P(Explains, WhatFailedAndWhere) {
  const auto& row = GetParam();
  const auto failure = Explain(row.tool, base::Split(row.output, '\n'), row.manifest);
  EXPECT_EQ(failure.message, row.message);
  EXPECT_EQ(failure.line, row.line);
  EXPECT_FALSE(failure.unreachable);
}

constexpr const char* kBackendRaises =
    R"(Ignoring six: markers 'python_version < "3"' don't match your environment
Processing ./evil
  Getting requirements to build wheel: started
  Getting requirements to build wheel: finished with status 'error'
  error: subprocess-exited-with-error
  
  × Getting requirements to build wheel did not run successfully.
  │ exit code: 1
  ╰─> [12 lines of output]
      Traceback (most recent call last):
        File "/var/task/evil/b.py", line 2, in get_requires_for_build_wheel
          raise RuntimeError("libfoo.h is missing; install libfoo-dev")
      RuntimeError: libfoo.h is missing; install libfoo-dev
      [end of output]
  
  note: This error originates from a subprocess, and is likely not a problem with pip.
error: subprocess-exited-with-error

× Getting requirements to build wheel did not run successfully.
│ exit code: 1
╰─> See above for output.

note: This error originates from a subprocess, and is likely not a problem with pip.)";

constexpr const char* kCompilerFails = R"(Processing ./evil
  Preparing metadata (pyproject.toml): started
  Preparing metadata (pyproject.toml): finished with status 'done'
Building wheels for collected packages: evil
  Building wheel for evil (pyproject.toml): finished with status 'error'
  error: subprocess-exited-with-error
  
  × Building wheel for evil (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> [4 lines of output]
      gcc -c foo.c
      foo.c:1:10: fatal error: libfoo.h: No such file or directory
      compilation terminated.
      error: command '/usr/bin/gcc' failed with exit code 1
      [end of output]
  
  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for evil
Failed to build evil
ERROR: Could not build wheels for evil, which is required to install pyproject.toml-based projects)";

constexpr const char* kGitFails =
    R"(Collecting git+https://127.0.0.1:9/x.git (from -r /var/task/requirements.txt (line 3))
  Cloning https://127.0.0.1:9/x.git to /build/home/pip-req-build-2eeuurtx
  fatal: unable to access 'https://127.0.0.1:9/x.git/': Failed to connect to 127.0.0.1 port 9
  error: subprocess-exited-with-error
  
  × git clone --quiet https://127.0.0.1:9/x.git did not run successfully.
  │ exit code: 128
  ╰─> See above for output.
  
  note: This error originates from a subprocess, and is likely not a problem with pip.)";

constexpr const char* kConflict = R"(Processing ./wh/aa-1.0-py3-none-any.whl
Processing ./wh/bb-1.0-py3-none-any.whl
INFO: pip is looking at multiple versions of aa to determine which version is compatible with other requirements. This could take a while.
ERROR: Cannot install -r requirements.txt (line 1) and -r requirements.txt (line 2) because these package versions have conflicting dependencies.

The conflict is caused by:
    aa 1.0 depends on cc==1
    bb 1.0 depends on cc==2

To fix this you could try to:
1. loosen the range of package versions you've specified
2. remove package versions to allow pip attempt to solve the dependency conflict

ERROR: ResolutionImpossible: for help visit https://pip.example/)";

constexpr const char* kWrongHash =
    R"(Processing ./wh/cc-1-py3-none-any.whl (from -r requirements.txt (line 2))
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with them.
    cc==1 from file:///wh/cc-1-py3-none-any.whl (from -r requirements.txt (line 2)):
        Expected sha256 0000000000000000000000000000000000000000000000000000000000000000
             Got        5c8d3e7bad157fecd8ed7f78f5cc19ebaa77532c8ac287056a94cc340aae7492
)";

constexpr const char* kBrokenArchive = R"(Processing ./wh/bad-1.0.tar.gz
ERROR: Exception:
Traceback (most recent call last):
  File "/usr/lib/python3.11/tarfile.py", line 1739, in gzopen
    raise ReadError("not a gzip file") from e
tarfile.ReadError: not a gzip file
WARNING: Running pip as the 'root' user can result in broken permissions)";

INSTANTIATE_TEST_SUITE_P(
    Pip, Explains,
    testing::Values(
        Case{"BackendRaises", Tool::kPip, "six; python_version<\"3\"\n# ours\n./evil\n",
             kBackendRaises,
             "Getting requirements to build wheel did not run successfully: RuntimeError: libfoo.h "
             "is missing; install libfoo-dev",
             3},
        Case{"CompilerFails", Tool::kPip, "\n./evil\n", kCompilerFails,
             "Building wheel for evil (pyproject.toml) did not run successfully: foo.c:1:10: fatal "
             "error: libfoo.h: No such file or directory",
             2},
        Case{"GitFails", Tool::kPip, "six\n\ngit+https://127.0.0.1:9/x.git\n", kGitFails,
             "git clone --quiet https://127.0.0.1:9/x.git did not run successfully: fatal: unable "
             "to access 'https://127.0.0.1:9/x.git/': Failed to connect to 127.0.0.1 port 9",
             3},
        Case{"Conflict", Tool::kPip, "aa==1.0\nbb==1.0\n", kConflict,
             "Cannot install -r requirements.txt (line 1) and -r requirements.txt (line 2) because "
             "these package versions have conflicting dependencies: aa 1.0 depends on cc==1; bb "
             "1.0 depends on cc==2",
             1},
        Case{"NoSuchVersion", Tool::kPip, "six\ncc==7\n",
             "ERROR: Could not find a version that satisfies the requirement cc==7 (from versions: "
             "1, 2)\nERROR: No matching distribution found for cc==7",
             "No matching distribution found for cc==7", 2},
        Case{"NotARequirement", Tool::kPip, "# x\nsix=1\n",
             "ERROR: Invalid requirement: 'six=1' (from line 2 of requirements.txt)\nHint: = is "
             "not a valid operator. Did you mean == ?",
             "Invalid requirement: 'six=1' (from line 2 of requirements.txt). Hint: = is not a "
             "valid operator. Did you mean == ?",
             2},
        Case{"OtherPython", Tool::kPip, "cc\nfuture==1.0\n",
             "Processing ./wh/future-1.0-py3-none-any.whl\nERROR: Package 'future' requires a "
             "different Python: 3.11.2 not in '>=3.13'",
             "Package 'future' requires a different Python: 3.11.2 not in '>=3.13'", 2},
        Case{"OtherPlatform", Tool::kPip, "./win-1.0-cp311-cp311-win_amd64.whl\n",
             "ERROR: win-1.0-cp311-cp311-win_amd64.whl is not a supported wheel on this platform.",
             "win-1.0-cp311-cp311-win_amd64.whl is not a supported wheel on this platform.", 0},
        Case{"WrongHash", Tool::kPip, "# c\ncc==1 --hash=sha256:00\n", kWrongHash,
             "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE: cc==1 from "
             "file:///wh/cc-1-py3-none-any.whl (from -r requirements.txt (line 2))",
             2},
        Case{"BrokenArchive", Tool::kPip, "./wh/bad-1.0.tar.gz\n", kBrokenArchive,
             "tarfile.ReadError: not a gzip file", 1},
        Case{"MissingHash", Tool::kPip, "six==1.16.0 --hash=sha256:8a\nidna==3.4\n",
             "Collecting six==1.16.0\nERROR: Hashes are required in --require-hashes mode, but "
             "they are missing from some requirements. Here is a list of those.\n    idna==3.4 "
             "--hash=sha256:90b7",
             "Hashes are required in --require-hashes mode, which one hash turns on for all, but "
             "they are missing from: idna==3.4 --hash=sha256:90b7",
             2},
        Case{"Nothing", Tool::kPip, "six\n", "", "", 0}),
    [](const auto& info) { return info.param.name; });

constexpr const char* kOutOfSync =
    R"(npm http fetch GET 200 http://127.0.0.1:41777/ms 43ms (cache updated)
npm error code EUSAGE
npm error
npm error `npm ci` can only install packages when your package.json and package-lock.json or npm-shrinkwrap.json are in sync. Please update your lock file with `npm install` before continuing.
npm error
npm error Missing: is-odd@3.0.1 from lock file
npm error Invalid: lock file's ms@2.1.2 does not satisfy ms@2.1.3
npm error
npm error Clean install a project
npm error
npm error Usage:
npm error npm ci
npm error
npm error Options:
npm error [--install-strategy <hoisted|nested|shallow|linked>] [--legacy-bundling]
npm error   --install-links
npm error     When set file: protocol dependencies will be packed and installed as
npm error
npm error Run "npm help ci" for more info
npm error A complete log of this run can be found in: /build/home/npm/_logs/debug-0.log)";

constexpr const char* kPeers = R"(npm error code ERESOLVE
npm error ERESOLVE unable to resolve dependency tree
npm error
npm error While resolving: undefined@undefined
npm error Found: react@18.0.0
npm error node_modules/react
npm error   react@"18.0.0" from the root project
npm error
npm error Could not resolve dependency:
npm error peer react@"^16" from old@1.0.0
npm error node_modules/old
npm error   old@"1.0.0" from the root project
npm error
npm error Fix the upstream dependency conflict, or retry this command with --force)";

constexpr const char* kNoGit = R"(npm error code 128
npm error An unknown git error occurred
npm error command git --no-replace-objects ls-remote ssh://git@127.0.0.1:9/x/y.git
npm error ssh: connect to host 127.0.0.1 port 9: Connection refused
npm error fatal: Could not read from remote repository.
npm error)";

constexpr const char* kBrokenLock = R"(npm error code EUSAGE
npm error
npm error The `npm ci` command can only install with an existing package-lock.json or
npm error npm-shrinkwrap.json with lockfileVersion >= 1. Run an install with npm@5 or
npm error later to generate a package-lock.json file, then try again.
npm error
npm error Clean install a project)";

constexpr const char* kWrongIntegrity =
    R"(npm http fetch GET http://127.0.0.1:18931/x.tgz attempt 1 failed with EINTEGRITY
npm warn tarball tarball data for is-even@http://127.0.0.1:18931/x.tgz (sha512-AAAA==) seems to be corrupted. Trying again.
npm http fetch GET 200 http://127.0.0.1:18931/x.tgz 6323ms attempt #3 (cache miss)
npm error code EINTEGRITY
npm error sha512-AAAA== integrity checksum failed when using sha512: wanted sha512-AAAA== but got sha512-5sL/eW==. (189 bytes)
npm error A complete log of this run can be found in: /build/home/npm/_logs/debug-0.log)";

constexpr const char* kOtherEngine = R"(npm error code EBADENGINE
npm error engine Unsupported engine
npm error engine Not compatible with your version of node/npm: late@1.0.0
npm error notsup Not compatible with your version of node/npm: late@1.0.0
npm error notsup Required: {"node":">=99"}
npm error notsup Actual:   {"node":"v20.20.2","npm":"11.19.1"})";

INSTANTIATE_TEST_SUITE_P(
    Npm, Explains,
    testing::Values(
        Case{"OutOfSync", Tool::kNpm, "{\n\"dependencies\": {\n\"is-odd\": \"3.0.1\"}}", kOutOfSync,
             "`npm ci` can only install packages when your package.json and package-lock.json or "
             "npm-shrinkwrap.json are in sync. Please update your lock file with `npm install` "
             "before continuing: Missing: is-odd@3.0.1 from lock file; Invalid: lock file's "
             "ms@2.1.2 does not satisfy ms@2.1.3",
             3},
        Case{"Peers", Tool::kNpm, "{\"dependencies\":{\n\"react\":\"18.0.0\"}}", kPeers,
             "unable to resolve dependency tree: Found: react@18.0.0; peer react@\"^16\" from "
             "old@1.0.0",
             2},
        Case{"NoGit", Tool::kNpm, "{}", kNoGit,
             "An unknown git error occurred: ssh: connect to host 127.0.0.1 port 9: Connection "
             "refused",
             0},
        Case{"BrokenLock", Tool::kNpm, "{}", kBrokenLock,
             "The `npm ci` command can only install with an existing package-lock.json or "
             "npm-shrinkwrap.json with lockfileVersion >= 1. Run an install with npm@5 or later to "
             "generate a package-lock.json file, then try again.",
             0},
        Case{"WrongIntegrity", Tool::kNpm, "{\"dependencies\":{\n\"is-even\":\"1.0.0\"}}",
             kWrongIntegrity,
             "is-even@http://127.0.0.1:18931/x.tgz is not what package-lock.json names: its "
             "checksum of sha512: wanted sha512-AAAA== but got sha512-5sL/eW==. (189 bytes)",
             2},
        Case{"OtherEngine", Tool::kNpm, "{\"dependencies\":{\n\"late\":\"1.0.0\"}}", kOtherEngine,
             "Unsupported engine: Not compatible with your version of node/npm: late@1.0.0; "
             "Required: {\"node\":\">=99\"}; Actual:   "
             "{\"node\":\"v20.20.2\",\"npm\":\"11.19.1\"}",
             2},
        Case{"NoSuchPackage", Tool::kNpm, "{\"dependencies\":{\n\"no-such\":\"1.0.0\"}}",
             "npm error code E404\nnpm error 404 Not Found - GET http://r/no-such - Not found\nnpm "
             "error 404\nnpm error 404  The requested resource 'no-such@1.0.0' could not be found "
             "or you do not have permission to access it.",
             "'no-such@1.0.0' could not be found or you do not have permission to access it.", 2},
        Case{"NoSuchVersion", Tool::kNpm, "{\"dependencies\":{\n\"ms\":\"99.0.0\"}}",
             "npm error code ETARGET\nnpm error notarget No matching version found for "
             "ms@99.0.0.\nnpm error notarget In most cases you or one of your dependencies are "
             "requesting a package version that doesn't exist.",
             "No matching version found for ms@99.0.0.", 2},
        Case{"Unauthorized", Tool::kNpm, "{\n\"private\":\"1\"}",
             "npm http fetch GET 401 http://r/private\nnpm error code E401\nnpm error 401 "
             "Unauthorized - GET http://r/private",
             "401 Unauthorized - GET http://r/private", 2},
        Case{"OlderNpm", Tool::kNpm, "{\n\"ms\":\"99\"}",
             "npm ERR! code ETARGET\nnpm ERR! notarget No matching version found for ms@99.",
             "No matching version found for ms@99.", 2},
        Case{"OtherUrl", Tool::kNpm, "{}",
             "npm error code EUNSUPPORTEDPROTOCOL\nnpm error Unsupported URL Type \"workspace:\": "
             "workspace:*",
             "Unsupported URL Type \"workspace:\": workspace:*", 0}),
    [](const auto& info) { return info.param.name; });

TEST(ExplainUnreachable, NamesWhy) {
  const auto npm = Explain(Tool::kNpm,
                           {"npm error code ECONNREFUSED", "npm error errno ECONNREFUSED",
                            "npm error request to http://r/ms failed, reason: ECONNREFUSED"},
                           "");
  EXPECT_TRUE(npm.unreachable);
  EXPECT_EQ(npm.message, "ECONNREFUSED");
}

TEST(ExplainUnreachable, SettingsThatPipCannotRead) {
  const auto pip =
      Explain(Tool::kPip,
              {"Configuration file could not be loaded.", "File contains no section headers.",
               "file: '/build/home/.config/pip/pip.conf', line: 1", "'[global\\n'"},
              "six\n");
  EXPECT_TRUE(pip.unreachable);
  EXPECT_EQ(pip.message,
            "Configuration file could not be loaded. File contains no section headers. file: "
            "'/build/home/.config/pip/pip.conf', line: 1 '[global\\n'");
}

TEST(BuildTail, HasNoHelpTextAndNoDisclaimer) {
  Tail tail;
  for (const auto& line : base::Split(kOutOfSync, '\n')) tail.Add(line);
  EXPECT_THAT(tail.Lines(), ElementsAre(HasSubstr("fetch"), HasSubstr("EUSAGE"),
                                        HasSubstr("in sync"), HasSubstr("Missing: is-odd"),
                                        HasSubstr("Invalid: "), HasSubstr("Clean install")));
  Tail pip;
  for (const auto& line : base::Split(kBackendRaises, '\n')) pip.Add(line);
  EXPECT_THAT(pip.Lines(), Not(testing::Contains(HasSubstr("not a problem with pip"))));
  for (int i = 0; i < 100; ++i) pip.Add("more");
  EXPECT_THAT(pip.Lines(), SizeIs(30));
  pip.Add(std::string(5000, 'x'));
  EXPECT_THAT(pip.Lines().back(), SizeIs(1000 + 3)) << "and an ellipsis";
}

}  // namespace
}  // namespace sless::build
