// Facts as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "hoplite/status.h"

namespace hoplite {

std::string status_text(const StoreStatus& status);
std::string status_json(const StoreStatus& status);
std::string nodes_text(const std::vector<NodeStatus>& nodes);
std::string nodes_json(const std::vector<NodeStatus>& nodes);
std::string objects_text(const ObjectList& list);
std::string objects_json(const ObjectList& list);

// "fetching 45 %", "complete".
std::string phase_text(const ObjectStatus& object);
// A name cut or an id, so that columns stay narrow; control characters are replaced.
std::string printable(const std::string& text, std::size_t limit);

}  // namespace hoplite
