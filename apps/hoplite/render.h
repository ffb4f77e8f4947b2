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

// `typed` are names that the target and sources may have, besides those that the status tells.
std::string reduce_text(const ReduceStatus& status, const std::vector<std::string>& typed = {});
std::string reduce_json(const ReduceStatus& status);
// "waiting for 2 of 4 sources", or "" if all are there.
std::string awaited_text(const ReduceStatus& status);

// Who has the room that `needed` bytes wait for.
std::string room_text(std::uint64_t needed, const StoreStatus& status, const ObjectList& objects);

// "key         value\n"; the values of several lines stand below each other.
std::string fact_line(const std::string& key, const std::string& value);
// "45 %"; of nothing, 0 %.
std::string percent(std::uint64_t part, std::uint64_t whole);
// "f32 2x3", "f32", or "" for bytes without a shape.
std::string array_text(const ArrayType& array);

// "fetching 45 %", "complete".
std::string phase_text(const ObjectStatus& object);
// A name as it is shown in a column: printable, and not wider than this.
std::string shown_name(const std::string& name, std::size_t columns = 32);

}  // namespace hoplite
