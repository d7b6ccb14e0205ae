#pragma once

// Protocol messages ⇄ the framework's types. Text that leaves is always valid UTF-8: hosts refuse a
// whole answer otherwise.

#include <string>
#include <string_view>

#include "client/base/result.h"
#include "proto/tfplugin6/tfplugin6.pb.h"
#include "provider/cty/value.h"
#include "provider/framework/context.h"
#include "provider/framework/diagnostics.h"
#include "provider/framework/function.h"
#include "provider/framework/schema.h"

namespace sless::plugin {

using ProtoDiagnostics = google::protobuf::RepeatedPtrField<tfplugin6::Diagnostic>;

tfplugin6::Schema ToProto(const framework::Schema& schema);
tfplugin6::ResourceIdentitySchema ToProto(const framework::IdentitySchema& schema);
tfplugin6::Function ToProto(const framework::FunctionDefinition& definition);
tfplugin6::AttributePath ToProto(const cty::Path& path);
tfplugin6::Diagnostic ToProto(const framework::Diagnostic& diagnostic);
void Append(const framework::Diagnostics& from, ProtoDiagnostics& to);

/// Reads a value of `type` from MessagePack, else JSON; a value with neither is null. `what` names
/// it in the message. Error: kInvalidArgument.
base::Result<cty::Value> FromProto(const tfplugin6::DynamicValue& value, const cty::Type& type,
                                   std::string_view what);
/// Writes MessagePack. Error: kInternal where the value does not have the type.
base::Status ToProto(const cty::Value& value, const cty::Type& type, std::string_view what,
                     tfplugin6::DynamicValue* out);

/// Identity data; null where there is none.
base::Result<cty::Value> FromProto(const tfplugin6::ResourceIdentityData& data,
                                   const cty::Type& type);

framework::ClientCapabilities FromProto(const tfplugin6::ClientCapabilities& capabilities);

/// `text` with U+FFFD in place of bytes that are no UTF-8.
std::string ToUtf8(std::string_view text);

}  // namespace sless::plugin
