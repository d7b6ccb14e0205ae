#include "server/store/namespaces.h"

#include "server/store/rules.h"

namespace sless::store {

base::Result<std::vector<std::string>> Namespaces(const ObjectStore& store, const std::string& kind,
                                                  const std::string& after, size_t limit) {
  std::vector<std::string> found;
  std::string last = after;
  while (found.size() < limit) {
    ListQuery query{kind, "", "", 1, ""};
    // Behind all objects of the namespace: names are compared as bytes, and no UTF-8 text has a
    // byte 0xff.
    if (!last.empty()) query.continue_after = ContinueAfter({kind, last, "\xff"});
    ASSIGN_OR_RETURN(const auto page, store.List(query));
    if (page.items.empty()) break;
    last = page.items[0].key.ns;
    found.push_back(last);
  }
  return found;
}

}  // namespace sless::store
