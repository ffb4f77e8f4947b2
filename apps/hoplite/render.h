// Facts as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "hoplite/reduce.h"
#include "hoplite/status.h"

namespace hoplite {

std::string status_text(const StoreStatus& status);
std::string status_json(const StoreStatus& status);
std::string nodes_text(const std::vector<NodeStatus>& nodes);
std::string nodes_json(const std::vector<NodeStatus>& nodes);
std::string objects_text(const ObjectList& list);
std::string objects_json(const ObjectList& list);

// `typed` are the names that the user may have given to the target and to sources.
std::string reduce_text(const ReduceStatus& status, const std::vector<std::string>& typed = {});
std::string reduce_json(const ReduceStatus& status);
// "waiting for 2 of 4 sources", or "" if all are there.
std::string awaited_text(const ReduceStatus& status);

// "key         value\n"; the values of several lines stand below each other.
std::string fact_line(const std::string& key, const std::string& value);
// "45 %"; of nothing, 0 %.
std::string percent(std::uint64_t part, std::uint64_t whole);
// "f32 2x3", "f32", or "" for bytes without a shape.
std::string array_text(const ArrayType& array);

// "fetching 45 %", "complete".
std::string phase_text(const ObjectStatus& object);
// A name cut or an id, so that columns stay narrow; control characters are replaced.
std::string printable(const std::string& text, std::size_t limit);

}  // namespace hoplite
