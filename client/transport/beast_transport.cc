#include "client/transport/beast_transport.h"

#include <algorithm>
#include <vector>

#include "client/base/guarded.h"
#include "client/transport/connection.h"
#include "client/transport/exchange.h"
#include "client/transport/tls.h"
#include "client/transport/url.h"

namespace sless::transport {
namespace {

using base::Code;

bool IsIdempotent(std::string_view method) {
  for (const char* known : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    if (method == known) return true;
  }
  return false;
}

/// Idle connections, the youngest taken first.
class Pool {
 public:
  Pool(size_t most, std::chrono::seconds longest) : most_(most), longest_(longest) {}

  std::unique_ptr<Connection> Take(const std::string& key) {
    for (;;) {
      auto found = idle_.With([&](auto& list) -> std::unique_ptr<Connection> {
        const auto it = std::find_if(list.rbegin(), list.rend(),
                                     [&](const Idle& idle) { return idle.key == key; });
        if (it == list.rend()) return nullptr;
        const bool fresh = clock_.Steady() - it->since < longest_;
        auto connection = std::move(it->connection);
        list.erase(std::next(it).base());
        if (!fresh)
          std::erase_if(list, [&](const Idle& idle) { return idle.key == key; });  // older still
        return fresh ? std::move(connection) : nullptr;
      });
      if (!found || found->IdleAndAlive()) return found;
    }
  }

  void Give(std::string key, std::unique_ptr<Connection> connection) {
    std::unique_ptr<Connection> oldest;  // closed outside of the lock
    idle_.With([&](auto& list) {
      if (most_ == 0) return;
      if (list.size() >= most_) {
        oldest = std::move(list.front().connection);
        list.erase(list.begin());
      }
      list.push_back({std::move(key), std::move(connection), clock_.Steady()});
    });
  }

 private:
  struct Idle {
    std::string key;
    std::unique_ptr<Connection> connection;
    base::SteadyPoint since;
  };
  const size_t most_;
  const std::chrono::seconds longest_;
  base::SystemClock clock_;
  base::Guarded<std::vector<Idle>> idle_;
};

class BeastTransport final : public Transport {
 public:
  explicit BeastTransport(TransportOptions options)
      : tls_(std::move(options.ca_file)),
        pool_(options.max_idle_connections, options.max_idle_time) {}

  base::Result<Response> Send(const Request& request, base::Deadline deadline,
                              std::stop_token stop) override {
    ASSIGN_OR_RETURN(const auto url, ParseUrl(request.url));
    RETURN_IF_ERROR(CheckRequest(request));
    Wait wait(url.Peer(), deadline, std::move(stop));
    const auto key = url.PoolKey();
    auto connection = pool_.Take(key);
    bool reused = connection != nullptr;
    bool repeated = false;
    for (;;) {
      if (!connection) {
        SSL_CTX* tls = nullptr;
        if (url.tls) {
          ASSIGN_OR_RETURN(tls, tls_.Get());
        }
        ASSIGN_OR_RETURN(connection, Connection::Open(url, tls, resolver_, wait));
      }
      auto outcome = RunExchange(request, url, *connection, wait);
      if (outcome.reusable) pool_.Give(key, std::move(connection));
      // The peer may close an idle connection at any time; that it did shows only now.
      const bool stale =
          reused && !outcome.response && outcome.response.error().code == Code::kUnavailable &&
          !outcome.any_received && (IsIdempotent(request.method) || !outcome.any_sent);
      if (!stale) {
        if (outcome.response) outcome.response->repeated = repeated;
        return std::move(outcome.response);
      }
      repeated = repeated || outcome.any_sent;
      connection.reset();
      reused = false;
    }
  }

 private:
  TlsSettings tls_;
  Resolver resolver_;
  Pool pool_;
};

}  // namespace

std::unique_ptr<Transport> MakeBeastTransport(TransportOptions options) {
  return std::make_unique<BeastTransport>(std::move(options));
}

}  // namespace sless::transport
