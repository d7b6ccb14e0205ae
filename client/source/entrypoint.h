#pragma once

// "file.function": grammar, and whether a tree has it.

#include <string>
#include <string_view>

#include "client/source/source.h"

namespace sless::source {

/// The last '.' splits; the file part may hold '/' ("src/handler.handle" is function handle of
/// src/handler.py).
struct Entrypoint {
  std::string file;  ///< without ending
  std::string function;
};
/// Grammar only. Error: kInvalidArgument, field "/spec/entrypoint".
base::Result<Entrypoint> ParseEntrypoint(std::string_view text);

/// The file of the tree that an entrypoint names: .py for python3.11; .js, .mjs, .cjs in this order
/// for nodejs20. Errors: kInvalidArgument, field "/spec/entrypoint", reason "HandlerNotFound", says
/// what is there instead; field "/spec/runtime" for a runtime that is not known.
base::Result<std::string> EntrypointFile(const Tree& tree, std::string_view runtime,
                                         std::string_view entrypoint);

/// As EntrypointFile, and looks into the file for the function: a careful scan of the text, no
/// interpreter. Says no only where it is sure; anything it cannot tell (star imports, computed
/// exports) is accepted, the start of the function finds out.
base::Status CheckEntrypoint(const Tree& tree, std::string_view runtime,
                             std::string_view entrypoint);

}  // namespace sless::source
