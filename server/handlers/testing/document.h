#pragma once

// Holds requests and answers against the OpenAPI document. Include in .cc files only, it brings
// <nlohmann/json.hpp>.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "server/http/testing/raw_client.h"

namespace sless::handlers {

struct Sent {
  std::string method;
  std::string target;   ///< path and query
  std::string body;     ///< as sent
  std::string headers;  ///< lines, each with CRLF
};

class Document {
 public:
  explicit Document(const std::string& text);

  /// What is wrong with the answer, "" for nothing: its status is one of this route and method, its
  /// headers and body are as documented, and a success was asked for as documented. A path or
  /// method that is not documented must be refused.
  std::string Problem(const Sent& sent, const http::Answer& answer) const;
  /// What is wrong with the body of a request; "" for nothing.
  std::string BodyProblem(const Sent& sent) const;
  /// Why `value` is not as `schema` says; "" if it is. A keyword that is not known here is a
  /// problem too.
  std::string SchemaProblem(const nlohmann::json& schema, const nlohmann::json& value,
                            const std::string& where = "") const;
  /// Follows a $ref.
  const nlohmann::json& Resolve(const nlohmann::json& part) const;
  const nlohmann::json& root() const { return root_; }

 private:
  /// What the document has for this path, null if nothing.
  const nlohmann::json* Path(std::string_view path) const;
  std::string AskedProblem(const nlohmann::json& operation, const Sent& sent) const;
  std::string AnswerProblem(const nlohmann::json& response, const Sent& sent,
                            const http::Answer& answer) const;

  nlohmann::json root_;
};

}  // namespace sless::handlers
