#include "server/http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "client/api/error_body.h"
#include "client/base/strings.h"

namespace sless::http {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool SameNoCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view Headers::Get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (SameNoCase(key, name)) return value;
  }
  return "";
}

bool Headers::Has(std::string_view name) const { return Count(name) > 0; }

size_t Headers::Count(std::string_view name) const {
  return std::count_if(fields_.begin(), fields_.end(),
                       [&](const Field& f) { return SameNoCase(f.first, name); });
}

void Headers::Set(std::string name, std::string value) {
  Remove(name);
  Add(std::move(name), std::move(value));
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& f) { return SameNoCase(f.first, name); });
}

std::optional<std::string> Request::Query(std::string_view name) const {
  for (const auto& part : base::Split(query, '&')) {
    const auto equals = part.find('=');
    const auto key = base::PercentDecode(part.substr(0, equals));
    if (!key || *key != name) continue;
    const auto raw = equals == std::string::npos ? std::string() : part.substr(equals + 1);
    return base::PercentDecode(raw).value_or(raw);
  }
  return std::nullopt;
}

base::Result<int64_t> Request::QueryInt(std::string_view name, int64_t fallback, int64_t least,
                                        int64_t most) const {
  const auto text = Query(name);
  if (!text) return fallback;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least || value > most) {
    return base::Err(
        base::Code::kInvalidArgument,
        fmt::format("query parameter \"{}\" must be a whole number from {} to {}, got \"{}\"", name,
                    least, most, base::Truncate(*text, 40)));
  }
  return value;
}

std::string Request::Param(std::string_view name) const {
  const auto it = params.find(name);
  return it == params.end() ? std::string() : it->second;
}

base::Status Request::CheckNotEncoded() const {
  const auto coding = headers.Get("Content-Encoding");
  if (coding.empty() || SameNoCase(coding, "identity")) return base::Ok();
  return base::Err(base::Code::kInvalidArgument,
                   fmt::format("bodies are taken as they are; want no Content-Encoding, got \"{}\"",
                               base::Truncate(coding, 40)),
                   "", "UnsupportedMediaType");
}

Response Response::Json(int status, std::string body) {
  return Text(status, std::move(body), "application/json");
}

Response Response::Text(int status, std::string body, std::string_view type) {
  Response response{status, {}, std::move(body)};
  response.headers.Add("Content-Type", std::string(type));
  return response;
}

Response Response::FromError(const base::Error& error) {
  auto response = Json(api::HttpStatus(error), api::ErrorBody(error));
  if (response.status == 503) response.headers.Add("Retry-After", "1");
  if (error.code == base::Code::kUnauthenticated)
    response.headers.Add("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace sless::http
