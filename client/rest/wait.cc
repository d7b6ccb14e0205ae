#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "client/api/fields.h"
#include "client/rest/kind.h"

namespace sless::rest {
namespace {

using base::Code;
using base::Result;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kLongestPoll{25};
/// A server that restarts is back within 10 s; one that is away for longer than this is an error.
constexpr std::chrono::seconds kLongestOutage{30};
/// Between two polls that come back at once.
constexpr milliseconds kShortestRound{250};

bool IsFinal(const api::Function& function) {
  const auto retry = function.metadata.annotations.find(std::string(api::kRetryAnnotation));
  const auto& status = function.status;
  return (status.phase == "Ready" || status.phase == "Failed") &&
         status.observed_retry ==
             (retry == function.metadata.annotations.end() ? "" : retry->second);
}
bool IsFinal(const api::Trigger& trigger) {
  const auto& status = trigger.status;
  return status.phase == "Ready" || status.phase == "Disabled" || status.phase == "Failed";
}
bool IsFinal(const api::Job& job) {
  const auto& status = job.status;
  return status.phase == "Succeeded" || status.phase == "Failed" || status.phase == "Skipped";
}

/// Repeats one long poll until `done` says so. The last object seen, and the errors, are given to
/// the caller's closures.
class Poller {
 public:
  Poller(const Caller& caller, const Call& call) : caller_(caller), call_(call) {}

  /// One poll. nullopt: nothing known, poll again.
  Result<std::optional<std::string>> Poll(const std::string& path_and_query) {
    const auto left = call_.deadline.Left(caller_.clock());
    // At the very end of the time the object is read once more, without a wait.
    const auto wait = std::min<std::chrono::seconds>(
        kLongestPoll, std::chrono::duration_cast<std::chrono::seconds>(left));
    const auto begun = caller_.clock().Steady();
    const ApiRequest request{.path = fmt::format("{}&timeout={}", path_and_query, wait.count()),
                             .extra_time = wait,
                             .once = true};
    const auto answer = caller_.Send(request, call_);
    if (answer) {
      away_since_.reset();
      Pace(begun);
      return answer->body;
    }
    const auto code = answer.error().code;
    if (code != Code::kUnavailable && code != Code::kResourceExhausted)
      return base::Err(answer.error());
    if (!away_since_) away_since_ = begun;
    if (caller_.clock().Steady() - *away_since_ > kLongestOutage) return base::Err(answer.error());
    if (!caller_.Sleep(milliseconds(500), call_)) {
      trouble_ = "; then " + answer.error().message;
      return base::Err(Code::kDeadlineExceeded, "");
    }
    return std::nullopt;
  }
  /// For the message where the time ran out while the server was away; "" where it was not.
  const std::string& trouble() const { return trouble_; }
  bool TimeLeft() const {
    return !call_.deadline.Passed(caller_.clock()) && !call_.stop.stop_requested();
  }
  /// Waits out the rest of a round that came back at once; called between two polls.
  bool Rest() { return pause_.count() <= 0 || caller_.Sleep(pause_, call_); }

 private:
  void Pace(base::SteadyPoint begun) {
    pause_ =
        std::chrono::duration_cast<milliseconds>(begun + kShortestRound - caller_.clock().Steady());
  }

  const Caller& caller_;
  const Call& call_;
  std::optional<base::SteadyPoint> away_since_;
  milliseconds pause_{0};
  std::string trouble_;
};

bool IsEndOfTime(const base::Error& error) {
  return error.code == Code::kDeadlineExceeded || error.code == Code::kCancelled;
}

template <class T>
Result<T> ReadObject(const std::string& body) {
  auto object = api::FromJsonText<T>(body, api::Unknown::kIgnore);
  if (!object) {
    return base::Err(Code::kInternal, "the answer to a long poll is not what this client knows: " +
                                          base::ToString(object.error()));
  }
  return object;
}

}  // namespace

template <class T>
Result<T> WaitReady(const Caller& caller, const Name& name, int64_t generation, const Call& call) {
  Poller poller(caller, call);
  std::string phase;
  const auto path = fmt::format("{}?wait=ready&generation={}", PathOf<T>(name), generation);
  do {
    const auto body = poller.Poll(path);
    if (!body && IsEndOfTime(body.error())) break;
    if (!body) return base::Err(body.error());
    if (!*body) continue;
    ASSIGN_OR_RETURN(auto object, ReadObject<T>(**body));
    if (object.status.observed_generation >= generation && IsFinal(object)) return object;
    phase = object.status.phase;
  } while (poller.Rest() && poller.TimeLeft());
  if (!phase.empty()) phase = "; its phase is " + phase;
  return caller.TimeIsUp(call, fmt::format("waiting for {} {}/{} to be ready{}{}", KindOf<T>(),
                                           name.ns, name.name, phase, poller.trouble()));
}

template <class T>
base::Status WaitGone(const Caller& caller, const T& seen, const Call& call) {
  Poller poller(caller, call);
  const Name name{seen.metadata.ns, seen.metadata.name};
  const auto path = PathOf<T>(name) + "?wait=gone";
  do {
    const auto body = poller.Poll(path);
    if (!body && body.error().code == Code::kNotFound) return base::Ok();
    if (!body && IsEndOfTime(body.error())) break;
    if (!body) return base::Err(body.error());
    if (!*body) continue;
    ASSIGN_OR_RETURN(const auto object, ReadObject<T>(**body));
    if (object.metadata.uid != seen.metadata.uid) return base::Ok();  // a new one of that name
  } while (poller.Rest() && poller.TimeLeft());
  return caller.TimeIsUp(call, fmt::format("waiting for the deletion of {} {}/{}{}", KindOf<T>(),
                                           name.ns, name.name, poller.trouble()));
}

template Result<api::Function> WaitReady(const Caller&, const Name&, int64_t, const Call&);
template Result<api::Trigger> WaitReady(const Caller&, const Name&, int64_t, const Call&);
template Result<api::Job> WaitReady(const Caller&, const Name&, int64_t, const Call&);
template base::Status WaitGone(const Caller&, const api::Function&, const Call&);
template base::Status WaitGone(const Caller&, const api::Trigger&, const Call&);
template base::Status WaitGone(const Caller&, const api::Job&, const Call&);

}  // namespace sless::rest
