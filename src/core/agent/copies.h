// Copies as their users here see them: opened in the data plane when somebody needs its bytes to move, followed as they grow.
#pragma once

#include <cstdint>

#include "core/agent/outbox.h"
#include "core/objects/object_table.h"

namespace hoplite {

class Copies {
 public:
  Copies(ObjectTable& table, const Progress& progress, Outbox& out) : table_(table), progress_(progress), out_(out) {}

  // Nothing happens if it has been opened.
  void open(Copy& copy);
  // The data plane tells when it grows.
  void follow(Copy& copy);
  // A client looks at it.
  [[nodiscard]] CopyUse view(Copy& copy);
  // Its writer has come so far.
  void write(Copy& copy, std::uint64_t bytes);
  // All bytes are there, and final.
  void complete(Copy& copy);
  // Of a slice that arrives or is combined, as the data plane has it.
  ValidBytes valid(const Copy& copy, std::uint32_t slice) const { return progress_.valid(copy.key, slice); }
  // Valid bytes from the front of the object.
  std::uint64_t front_bytes(const Copy& copy) const;

 private:
  ObjectTable& table_;
  const Progress& progress_;
  Outbox& out_;
};

}  // namespace hoplite
