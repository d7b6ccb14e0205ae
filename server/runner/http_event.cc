#include "server/runner/http_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/http/head_writer.h"
#include "server/runner/json_text.h"

namespace sless::runner {
namespace {

using base::Code;
using nlohmann::json;

// Headers are bytes; JSON wants UTF-8. What is not UTF-8 is read as Latin-1, as HTTP once said.
std::string HeaderText(std::string_view value) {
  if (base::IsUtf8(value)) return std::string(value);
  std::string out;
  for (const unsigned char c : value) {
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return out;
}

std::string QueryText(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  const auto decoded = base::PercentDecode(text);
  return decoded && base::IsUtf8(*decoded) ? *decoded : HeaderText(text);
}

// Written by the gateway for us; no business of the function, and nothing that it may set.
bool Internal(std::string_view lower_name) { return lower_name.substr(0, 8) == "x-sless-"; }

void AddHeaders(const http::Request& request, json& event) {
  auto single = json::object(), multi = json::object();
  for (const auto& [name, value] : request.headers) {
    const std::string key = base::Lower(name), text = HeaderText(value);
    if (Internal(key)) continue;
    if (!multi.contains(key)) {
      multi[key] = json::array();
      single[key] = text;
    } else {
      single[key] = single[key].get<std::string>() + (key == "cookie" ? "; " : ",") + text;
    }
    multi[key].push_back(text);
  }
  event["headers"] = std::move(single);
  event["multiValueHeaders"] = std::move(multi);
}

void AddQuery(const std::string& query, json& event) {
  auto single = json::object(), multi = json::object();
  if (!query.empty()) {
    for (const auto& part : base::Split(query, '&')) {
      if (part.empty()) continue;
      const size_t equals = part.find('=');
      const std::string name = QueryText(part.substr(0, equals));
      const std::string value =
          equals == std::string::npos ? "" : QueryText(part.substr(equals + 1));
      single[name] = value;
      if (!multi.contains(name)) multi[name] = json::array();
      multi[name].push_back(value);
    }
  }
  event["queryStringParameters"] = std::move(single);
  event["multiValueQueryStringParameters"] = std::move(multi);
  event["rawQueryString"] = HeaderText(query);
}

// The gateway drops the header as it came and writes one address; of several entries the last
// is the nearest to us.
std::string SourceIp(const http::Request& request) {
  const auto hops = base::Split(request.headers.Get("X-Forwarded-For"), ',');
  return std::string(base::Trim(hops.back()));
}

tl::unexpected<base::Error> Wrong(std::string message) {
  return base::Err(Code::kFailedPrecondition, "the handler's answer: " + std::move(message), "",
                   "HandlerError");
}

std::string_view TypeOf(std::string_view value) {
  switch (value.front()) {
    case '"':
      return "string";
    case '{':
      return "object";
    case '[':
      return "array";
    case 't':
    case 'f':
      return "boolean";
    case 'n':
      return "null";
    default:
      return "number";
  }
}

std::string StringOf(std::string_view value) {
  const auto parsed = base::ParseJson(value);
  return parsed && parsed->is_string() ? parsed->get<std::string>() : "";
}

// What a handler returned, each part as the handler wrote it.
class Description {
 public:
  explicit Description(std::string_view text) : parts_(PartsOf(text)) {}
  bool Has(std::string_view name) const { return !Find(name).empty(); }
  /// "" where it is missing or null.
  std::string_view Get(std::string_view name) const {
    const auto value = Find(name);
    return value == "null" ? "" : value;
  }

 private:
  // The last one of a name counts, as for all who parse JSON.
  std::string_view Find(std::string_view name) const {
    const auto it = std::find_if(parts_.rbegin(), parts_.rend(),
                                 [&](const auto& p) { return p.first == name; });
    return it == parts_.rend() ? "" : it->second;
  }
  std::vector<std::pair<std::string, std::string_view>> parts_;
};

base::Status AddHeader(http::Response& response, const std::string& name, std::string_view value) {
  if (!base::IsHttpToken(name))
    return Wrong(fmt::format("{} is no name of a header", json(name).dump(-1, ' ', true)));
  const auto type = TypeOf(value);
  if (type != "string" && type != "number" && type != "boolean")
    return Wrong(fmt::format("header \"{}\" is of type {}, want a string", name, type));
  std::string text = type == "string" ? StringOf(value) : std::string(value);
  for (const unsigned char c : text) {
    if ((c < 0x20 && c != '\t') || c == 0x7f) {
      return Wrong(fmt::format("header \"{}\" holds the control character {:#04x}", name, c));
    }
  }
  // The length and the connection are ours to manage.
  const std::string lower = base::Lower(name);
  if (Internal(lower) || lower == "x-request-id" || lower == "content-length" || lower == "date" ||
      http::IsHopByHop(lower, ""))
    return base::Ok();
  response.headers.Add(name, std::move(text));
  return base::Ok();
}

base::Status CheckSize(const http::Headers& headers) {
  size_t size = 0;
  for (const auto& [name, value] : headers) size += name.size() + value.size() + 4;
  if (size <= http::kMaxAnswerHeaders) return base::Ok();
  return Wrong(fmt::format("its headers have {} bytes, at most {} are allowed", size,
                           http::kMaxAnswerHeaders));
}

base::Status AddHeaderMap(http::Response& response, const Description& answer,
                          std::string_view member) {
  const auto map = answer.Get(member);
  if (map.empty()) return base::Ok();
  if (TypeOf(map) != "object")
    return Wrong(fmt::format("{} is of type {}, want an object", member, TypeOf(map)));
  for (const auto& [name, value] : PartsOf(map)) {
    if (TypeOf(value) != "array") {
      RETURN_IF_ERROR(AddHeader(response, name, value));
      continue;
    }
    for (const auto& one : PartsOf(value)) RETURN_IF_ERROR(AddHeader(response, name, one.second));
  }
  return CheckSize(response.headers);
}

base::Status AddCookies(http::Response& response, std::string_view cookies) {
  if (cookies.empty()) return base::Ok();
  if (TypeOf(cookies) != "array")
    return Wrong(fmt::format("cookies is of type {}, want an array", TypeOf(cookies)));
  for (const auto& cookie : PartsOf(cookies))
    RETURN_IF_ERROR(AddHeader(response, "Set-Cookie", cookie.second));
  return base::Ok();
}

base::Status SetHeaders(http::Response& response, const Description& answer) {
  RETURN_IF_ERROR(AddHeaderMap(response, answer, "multiValueHeaders"));
  http::Response more;
  RETURN_IF_ERROR(AddHeaderMap(more, answer, "headers"));
  // A name in both maps: the list is the fuller word.
  const auto listed = response.headers;
  for (const auto& [name, value] : more.headers) {
    if (!listed.Has(name)) response.headers.Add(name, value);
  }
  RETURN_IF_ERROR(AddCookies(response, answer.Get("cookies")));
  return CheckSize(response.headers);
}

base::Status SetBody(http::Response& response, const Description& answer) {
  const auto flag = answer.Get("isBase64Encoded");
  if (!flag.empty() && TypeOf(flag) != "boolean")
    return Wrong(fmt::format("isBase64Encoded is of type {}, want a boolean", TypeOf(flag)));
  const bool base64 = flag == "true";
  const auto body = answer.Get("body");
  if (body.empty()) return base::Ok();
  if (TypeOf(body) != "string") {
    if (base64)
      return Wrong(fmt::format("body is of type {}, want a string of base64", TypeOf(body)));
    response.body = std::string(body);
    return base::Ok();
  }
  response.body = StringOf(body);
  if (base64) {
    auto bytes = base::Base64Decode(response.body);
    if (!bytes)
      return Wrong(
          "isBase64Encoded is true, but body is no base64 (A-Z, a-z, 0-9, + and /, padded with =, "
          "no line breaks)");
    response.body = std::move(*bytes);
  }
  return base::Ok();
}

base::Result<int> StatusOf(std::string_view text) {
  const json status = text.empty() ? json() : base::ParseJson(text).value_or(json());
  if (!status.is_number_integer())
    return Wrong(fmt::format("statusCode is of type {}, want a whole number", status.type_name()));
  if (status < 200 || status > 599)
    return Wrong(fmt::format("statusCode is {}, want 200 to 599", text));
  return status.get<int>();
}

base::Result<http::Response> Described(const Description& answer) {
  http::Response response;
  ASSIGN_OR_RETURN(response.status, StatusOf(answer.Get("statusCode")));
  RETURN_IF_ERROR(SetHeaders(response, answer));
  RETURN_IF_ERROR(SetBody(response, answer));
  if (response.status == 204 || response.status == 205 || response.status == 304)
    response.body.clear();
  if (!response.body.empty() && !response.headers.Has("Content-Type"))
    response.headers.Set("Content-Type", "application/json");
  return response;
}

// As a string in JSON text, without its quotes.
size_t EscapedSize(std::string_view text) {
  size_t size = text.size();
  for (const char c : text) {
    if (c == '"' || c == '\\' || (c >= '\b' && c <= '\r' && c != '\v')) {
      size += 1;
    } else if (c >= 0 && c < 0x20) {
      size += 5;
    }
  }
  return size;
}

// JSON writes a control character as six bytes: large text that is full of them goes as base64, so
// that no request makes an event which its process cannot take.
bool IsText(std::string_view body) {
  return base::IsUtf8(body) &&
         (body.size() <= kMaxBodyText / 6 || EscapedSize(body) <= kMaxBodyText);
}

}  // namespace

std::string HttpEvent(const http::Request& request, base::TimePoint now) {
  const std::string raw = request.rest.empty() ? "/" : request.rest;
  // Decoded whatever it holds, as for the triggers; what is no UTF-8 becomes U+FFFD below.
  const std::string path = base::PercentDecode(raw).value_or(HeaderText(raw));
  const std::string agent = HeaderText(request.headers.Get("User-Agent"));
  const std::string source = SourceIp(request);
  const std::string protocol = HeaderText(request.headers.Get("X-Sless-Protocol"));
  const bool text = IsText(request.body);

  json event{{"httpMethod", request.method},
             {"path", path},
             {"rawPath", HeaderText(raw)},
             {"isBase64Encoded", !text}};
  event["body"] = request.body.empty()
                      ? json(nullptr)
                      : json(text ? request.body : base::Base64Encode(request.body));
  AddHeaders(request, event);
  AddQuery(request.query, event);
  const std::string host = HeaderText(
      request.headers.Get(request.headers.Has("X-Forwarded-Host") ? "X-Forwarded-Host" : "Host"));
  event["requestContext"] = {
      {"requestId", request.request_id},
      {"stage", "$default"},
      {"path", HeaderText(request.headers.Get("X-Sless-Prefix")) + path},
      {"httpMethod", request.method},
      {"protocol", protocol},
      {"domainName", host},
      {"requestTime", base::FormatTime(now)},
      {"requestTimeEpoch",
       std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count()},
      {"identity", {{"sourceIp", source}, {"userAgent", agent}}},
      {"http",
       {{"method", request.method},
        {"path", path},
        {"protocol", protocol},
        {"sourceIp", source},
        {"userAgent", agent}}},
  };
  return base::DumpJson(event);
}

base::Result<http::Response> HttpAnswer(std::string_view result_json) {
  // Only an object can describe an answer; what does not is passed on byte for byte, so that
  // numbers keep their digits.
  if (result_json.substr(0, 1) == "{" && base::Contains(result_json, "\"statusCode\"")) {
    const Description answer(result_json);
    if (answer.Has("statusCode")) return Described(answer);
  }
  return http::Response::Json(200, std::string(result_json));
}

}  // namespace sless::runner
