#include "provider/plugin/crash.h"

#include <cxxabi.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <typeinfo>

extern "C" const char __ehdr_start;  // where the linker puts the program's first byte

namespace sless::plugin {
namespace {

constexpr int kMaxFrames = 40;

// Prepared at the start: inside a signal handler nothing may be allocated. It lives as long as the
// process.
std::array<char, 128> program_name{};
std::array<char, 128> file_to_remove{};
std::array<char, 128> folder_to_remove{};
std::atomic<bool> crashing = false;

// Writes to stderr with async-signal-safe calls only.
void Put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void PutHex(uintptr_t value) {
  char digits[2 + 2 * sizeof value];
  size_t at = sizeof digits;
  do {
    digits[--at] = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  digits[--at] = 'x';
  digits[--at] = '0';
  Put({digits + at, sizeof digits - at});
}

_Unwind_Reason_Code PutFrame(_Unwind_Context* context, void* counter) {
  int& left = *static_cast<int*>(counter);
  if (left-- <= 0) return _URC_END_OF_STACK;
  Put("  at ");
  // Offsets into the program, as addr2line takes them wherever the program was loaded.
  PutHex(static_cast<uintptr_t>(_Unwind_GetIP(context)) -
         reinterpret_cast<uintptr_t>(&__ehdr_start));
  Put("\n");
  return _URC_NO_REASON;
}

void PutCrash(std::string_view why, std::string_view detail) {
  // The host records from a line with this beginning on.
  Put("panic: ");
  Put(program_name.data());
  Put(": ");
  Put(why);
  if (!detail.empty()) {
    Put(": ");
    Put(detail);
  }
  Put("\n\nstack (for addr2line -Cfe <program>):\n");
  int left = kMaxFrames;
  _Unwind_Backtrace(&PutFrame, &left);
  if (file_to_remove[0] != 0) {
    unlink(file_to_remove.data());
    rmdir(folder_to_remove.data());
  }
}

template <size_t kSize>
void Copy(const std::string& text, std::array<char, kSize>& to) {
  to.fill(0);
  std::copy_n(text.begin(), std::min(text.size(), kSize - 1), to.begin());
}

std::string_view SignalName(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV (invalid memory access)";
    case SIGBUS:
      return "SIGBUS (bad memory access)";
    case SIGFPE:
      return "SIGFPE (arithmetic error)";
    case SIGILL:
      return "SIGILL (illegal instruction)";
    default:
      return "SIGABRT (aborted)";
  }
}

void OnFatalSignal(int signal) {
  if (!crashing.exchange(true)) PutCrash(SignalName(signal), "");
  // SA_RESETHAND has put the default action back: end by it, so that the host sees the signal.
  raise(signal);
}

[[noreturn]] void OnTerminate() {
  if (!crashing.exchange(true)) {
    const std::exception_ptr current = std::current_exception();
    if (current) {
      try {
        std::rethrow_exception(current);
      } catch (const std::exception& e) {
        // Only the first line: a text of several lines would break the frames below.
        std::string_view what = e.what();
        PutCrash(typeid(e).name(), what.substr(0, what.find('\n')));
      } catch (...) {
        PutCrash("an exception that is no std::exception", "");
      }
    } else {
      PutCrash("std::terminate", "");
    }
  }
  std::abort();
}

}  // namespace

void InstallCrashText(const std::string& program) {
  Copy(program, program_name);
  std::set_terminate(&OnTerminate);
  struct sigaction action {};
  action.sa_handler = &OnFatalSignal;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(signal, &action, nullptr);
}

void RemoveAtCrash(const std::string& file) {
  // A path that does not fit is left alone rather than cut.
  if (file.size() >= file_to_remove.size()) return;
  Copy(file.substr(0, file.rfind('/')), folder_to_remove);
  Copy(file, file_to_remove);
}

}  // namespace sless::plugin
