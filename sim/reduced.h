// What a reduce may have come to: the operator applied to one put of each of `count` of its sources.
#pragma once

#include <optional>
#include <vector>

#include "sim/ledger.h"

namespace hoplite::sim {

// Reduces of reduces have the same operator and type, so that all that matters is which puts are in it.

// The puts whose combination begins with these bytes, or nothing. Only puts that were sealed count, and those that were
// refused only `in_partition`: another home may have accepted them.
std::optional<std::vector<PutNumber>> explain_reduced(const Ledger& ledger, const ReduceRecord& reduce, ByteView bytes,
                                                      bool in_partition);

}  // namespace hoplite::sim
