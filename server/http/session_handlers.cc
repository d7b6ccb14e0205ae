#include <mutex>

#include "server/http/session.h"

namespace sless::http {
namespace {

base::Error Busy() {
  return {base::Code::kUnavailable,
          "too many requests are waiting for a worker; try again",
          "",
          "Overloaded",
          {}};
}

base::Error Broken() {
  return {base::Code::kInternal,
          "the request ended in an unexpected error; the server's log has it under the request id",
          "",
          "",
          {}};
}

// Exceptions stop here: the client gets a 500, the log the text.
template <class F>
std::invoke_result_t<F> Barrier(base::Logger& log, const Request& request, F&& handler) {
  std::string what;
  try {
    return handler();
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "unknown exception";
  }
  log.Error("a handler threw",
            {{"route", request.route}, {"request_id", request.request_id}, {"what", what}});
  return Broken();
}

// What is to be answered now; nothing where the body is wanted.
std::optional<Reply> Begin(const UploadHandler& handler, Request& request,
                           std::unique_ptr<Upload>& upload) {
  auto begun = handler(request);
  if (auto* answer = std::get_if<Reply>(&begun)) return std::move(*answer);
  upload = std::move(std::get<std::unique_ptr<Upload>>(begun));
  return std::nullopt;
}

std::optional<Reply> Take(Upload& upload, std::string_view piece) {
  if (piece.empty()) return upload.Finish();
  const auto status = upload.Write(piece);
  if (!status) return Reply(status.error());
  return std::nullopt;
}

// Holds the answer of a deferred handler; the last copy of the responder answers where nobody did.
class Ticket {
 public:
  explicit Ticket(std::shared_ptr<Signal> signal) : signal_(std::move(signal)) {}
  struct Box {
    std::mutex mutex;
    std::optional<Response> response;
  };
  ~Ticket() { Answer(Response::FromError(Broken())); }
  void Answer(Response response) {
    {
      std::lock_guard lock(box->mutex);
      if (box->response) return;
      box->response = std::move(response);
    }
    signal_->Set();
  }
  std::shared_ptr<Box> box = std::make_shared<Box>();

 private:
  std::shared_ptr<Signal> signal_;
};

}  // namespace

Task<bool> Session::TryOnWorker(std::function<void()> work) {
  const auto done = std::make_shared<Signal>(stream_.get_executor());
  const bool posted = shared_->workers.Post([&work, done] {
    work();
    done->Set();
  });
  if (!posted) co_return false;
  co_await done->Wait();
  co_return true;
}

Task<void> Session::OnWorker(std::function<void()> work) {
  const auto done = std::make_shared<Signal>(stream_.get_executor());
  shared_->workers.PostNext([&work, done] {
    work();
    done->Set();
  });
  co_await done->Wait();
}

Task<bool> Session::PassesGuard(const Router::Route& route) {
  if (!route.options.guard) co_return true;
  std::optional<Response> refusal;
  const bool ran = co_await TryOnWorker([&] {
    auto reply = Barrier(shared_->log, request_, [&]() -> Reply {
      const auto status = route.options.guard(request_);
      if (status) return Response{200, {}, ""};
      return status.error();
    });
    if (reply.response().status != 200) refusal = std::move(reply.response());
  });
  if (!ran) refusal = Response::FromError(Busy());
  if (!refusal) co_return true;
  co_await Respond(std::move(*refusal));
  co_return false;
}

Task<bool> Session::ReadWholeBody() {
  for (;;) {
    const auto chunk = co_await ReadBody();
    if (!chunk) {
      closing_ = true;
      co_await Respond(Response::FromError(chunk.error()));
      co_return false;
    }
    if (chunk->empty()) co_return true;
    request_.body.append(*chunk);
  }
}

Task<void> Session::Dispatch(const Router::Route& route) {
  const bool passes = co_await PassesGuard(route);
  if (!passes) co_return;
  if (const auto* stream = std::get_if<std::shared_ptr<StreamHandlerBase>>(&route.target)) {
    co_await RunStream(static_cast<const StreamRoute&>(**stream));
  } else if (const auto* upload = std::get_if<UploadHandler>(&route.target)) {
    co_await RunUpload(*upload);
  } else {
    const bool whole = co_await ReadWholeBody();
    if (!whole) co_return;
    if (const auto* handler = std::get_if<Handler>(&route.target)) {
      co_await RunPlain(route, *handler);
    } else {
      co_await RunDeferred(route, std::get<DeferredHandler>(route.target));
    }
  }
}

Task<void> Session::RunPlain(const Router::Route&, const Handler& handler) {
  std::optional<Reply> reply;
  const bool ran = co_await TryOnWorker(
      [&] { reply = Barrier(shared_->log, request_, [&] { return handler(request_); }); });
  if (!ran) {
    co_await Respond(Response::FromError(Busy()));
    co_return;
  }
  if (reply->wait()) {
    auto response = co_await LongPoll(std::move(*reply->wait()));
    co_await Respond(std::move(response));
  } else {
    co_await Respond(std::move(reply->response()));
  }
}

Task<Response> Session::LongPoll(Wait wait) {
  const auto id = wait.hub->Listen(wait.topic, [wake = wake_] { wake->Set(); });
  std::optional<Response> response;
  for (bool last = false; !response && !last;) {
    last = std::chrono::steady_clock::now() >= wait.until || shared_->stopping ||
           gone_.stop_requested();
    co_await OnWorker([&] {
      auto reply = Barrier(shared_->log, request_, [&]() -> std::optional<Reply> {
        if (auto found = wait.check(last)) return Reply(std::move(*found));
        return std::nullopt;
      });
      if (reply) response = std::move(reply->response());
    });
    if (!response && !last) co_await wake_->Wait(wait.until);
  }
  wait.hub->Forget(wait.topic, id);
  co_return response ? std::move(*response) : Response::FromError(Broken());
}

Task<void> Session::RunUpload(const UploadHandler& handler) {
  std::unique_ptr<Upload> upload;
  std::optional<Reply> answer;
  const bool ran = co_await TryOnWorker([&] {
    answer = Barrier(shared_->log, request_, [&] { return Begin(handler, request_, upload); });
  });
  if (!ran) answer = Busy();
  while (!answer) {
    const auto piece = co_await ReadBody();
    co_await OnWorker([&] {
      if (piece) {
        answer = Barrier(shared_->log, request_, [&] { return Take(*upload, *piece); });
      } else {
        answer = piece.error();
      }
      if (answer) upload.reset();  // here, as it may block
    });
  }
  co_await Respond(std::move(answer->response()));
}

Task<void> Session::RunDeferred(const Router::Route& route, const DeferredHandler& handler) {
  auto ticket = std::make_shared<Ticket>(wake_);
  const auto box = ticket->box;
  auto copy = request_;  // the session still needs its own for the log
  copy.body = std::move(request_.body);
  auto failed = Barrier(shared_->log, request_, [&]() -> Reply {
    handler(std::move(copy), [ticket](Response response) { ticket->Answer(std::move(response)); });
    return Response{};
  });
  if (failed.response().status != 200) ticket->Answer(std::move(failed.response()));
  ticket.reset();
  for (;;) {
    {
      std::unique_lock lock(box->mutex);
      if (box->response) break;
    }
    const bool listens = route.options.half_close && stream_.socket().is_open();
    if (gone_.stop_requested() && !listens) {
      status_ = 499;  // nobody listens; the handler was told by request.gone
      co_return;
    }
    co_await wake_->Wait();
  }
  co_await Respond(std::move(*box->response));
}

Task<void> Session::RunStream(const StreamRoute& route) {
  if (parser_->is_done()) WatchForClose();
  bool threw = false;
  try {
    co_await route.Run(*this);
  } catch (const std::exception& e) {
    shared_->log.Error(
        "a handler threw",
        {{"route", request_.route}, {"request_id", request_.request_id}, {"what", e.what()}});
    threw = true;
  }
  if (status_ == 0 && !gone_.stop_requested()) {
    co_await Respond(Response::FromError(Broken()));
  } else if (threw || !answered_) {
    closing_ = true;
    if (status_ == 0) status_ = 499;
  }
}

void AddStream(Router& router, std::string method, std::string pattern, StreamHandler handler,
               RouteOptions options) {
  router.AddRoute(
      std::move(method), std::move(pattern),
      std::shared_ptr<StreamHandlerBase>(std::make_shared<StreamRoute>(std::move(handler))),
      std::move(options));
}

}  // namespace sless::http
