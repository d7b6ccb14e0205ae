#pragma once

// The stock of plan modifiers. Names as users of other frameworks know them.

#include <functional>
#include <string>

#include "provider/framework/schema.h"

namespace sless::framework {

/// Keeps the prior value of a computed attribute that would become unknown: for what never changes
/// after creation. Nothing on create, where the plan is known, or where the configuration is
/// unknown. Not below lists: an element without partner has no prior value and stays unknown.
PlanModifier UseStateForUnknown();
/// The same, but a null prior value stays unknown.
PlanModifier UseNonNullStateForUnknown();
/// A change of the value replaces the resource. An unknown value counts as a change.
PlanModifier RequiresReplace();
/// The same, where `condition` says so as well. `description` completes "replaces the resource …".
PlanModifier RequiresReplaceIf(std::function<bool(const ModifyContext&)> condition,
                               std::string description);
/// The same, but only where the attribute is configured: its removal does not replace.
PlanModifier RequiresReplaceIfConfigured();

}  // namespace sless::framework
