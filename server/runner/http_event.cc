#include "server/runner/http_event.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/http/head_writer.h"

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

base::Status AddHeader(http::Response& response, const std::string& name, const json& value) {
  if (!http::IsToken(name))
    return Wrong(fmt::format("{} is no name of a header", json(name).dump(-1, ' ', true)));
  std::string text;
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_number() || value.is_boolean()) {
    text = base::DumpJson(value);
  } else {
    return Wrong(
        fmt::format("header \"{}\" is of type {}, want a string", name, value.type_name()));
  }
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
  response.headers.Add(name, text);
  return base::Ok();
}

base::Status AddHeaderMap(http::Response& response, const json& answer, const char* member) {
  const auto it = answer.find(member);
  if (it == answer.end() || it->is_null()) return base::Ok();
  if (!it->is_object())
    return Wrong(fmt::format("{} is of type {}, want an object", member, it->type_name()));
  for (const auto& [name, value] : it->items()) {
    if (!value.is_array()) {
      RETURN_IF_ERROR(AddHeader(response, name, value));
      continue;
    }
    for (const auto& one : value) RETURN_IF_ERROR(AddHeader(response, name, one));
  }
  return base::Ok();
}

base::Status SetBody(http::Response& response, const json& answer) {
  const auto flag = answer.find("isBase64Encoded");
  if (flag != answer.end() && !flag->is_null() && !flag->is_boolean()) {
    return Wrong(fmt::format("isBase64Encoded is of type {}, want a boolean", flag->type_name()));
  }
  const bool base64 = flag != answer.end() && flag->is_boolean() && flag->get<bool>();
  const auto body = answer.find("body");
  if (body == answer.end() || body->is_null()) return base::Ok();
  if (!body->is_string()) {
    if (base64)
      return Wrong(fmt::format("body is of type {}, want a string of base64", body->type_name()));
    response.body = base::DumpJson(*body);
    return base::Ok();
  }
  response.body = body->get<std::string>();
  if (base64) {
    auto bytes = base::Base64Decode(response.body);
    if (!bytes) return Wrong("isBase64Encoded is true, but body is no base64 with padding");
    response.body = std::move(*bytes);
  }
  return base::Ok();
}

base::Result<http::Response> Described(const json& answer) {
  http::Response response;
  const json& status = answer["statusCode"];
  if (!status.is_number_integer()) {
    return Wrong(fmt::format("statusCode is of type {}, want a whole number", status.type_name()));
  }
  if (status < 200 || status > 599)
    return Wrong(fmt::format("statusCode is {}, want 200 to 599", status.dump()));
  response.status = status.get<int>();
  RETURN_IF_ERROR(AddHeaderMap(response, answer, "multiValueHeaders"));
  http::Response more;
  RETURN_IF_ERROR(AddHeaderMap(more, answer, "headers"));
  // A name in both maps: the list is the fuller word.
  const auto listed = response.headers;
  for (const auto& [name, value] : more.headers) {
    if (!listed.Has(name)) response.headers.Add(name, value);
  }
  if (const auto cookies = answer.find("cookies"); cookies != answer.end() && cookies->is_array()) {
    for (const auto& cookie : *cookies) RETURN_IF_ERROR(AddHeader(response, "Set-Cookie", cookie));
  }
  RETURN_IF_ERROR(SetBody(response, answer));
  if (response.status == 204 || response.status == 304) response.body.clear();
  if (!response.body.empty() && !response.headers.Has("Content-Type"))
    response.headers.Set("Content-Type", "application/json");
  return response;
}

}  // namespace

std::string HttpEvent(const http::Request& request, base::TimePoint now) {
  const std::string raw = request.rest.empty() ? "/" : request.rest;
  const auto decoded = base::PercentDecode(raw);
  const std::string path = decoded && base::IsUtf8(*decoded) ? *decoded : HeaderText(raw);
  const std::string agent = HeaderText(request.headers.Get("User-Agent"));
  const std::string source = SourceIp(request);
  const std::string protocol = request.http11 ? "HTTP/1.1" : "HTTP/1.0";
  const bool text = base::IsUtf8(request.body);

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
  if (result_json.substr(0, 1) == "{" &&
      result_json.find("\"statusCode\"") != std::string_view::npos) {
    auto answer = base::ParseJson(result_json);
    if (!answer) return Wrong(answer.error().message);
    if (answer->contains("statusCode")) return Described(*answer);
  }
  return http::Response::Json(200, std::string(result_json));
}

}  // namespace sless::runner
