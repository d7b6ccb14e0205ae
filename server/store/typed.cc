#include "server/store/typed_impl.h"

SLESS_INSTANTIATE_TYPED(sless::api::Function);
SLESS_INSTANTIATE_TYPED(sless::api::Trigger);
SLESS_INSTANTIATE_TYPED(sless::api::Job);
SLESS_INSTANTIATE_TYPED(sless::api::Run);
