// A part of the arena that this process may write, for as long as the window lives.
#pragma once

#include <memory>

#include "protocol/client_messages.h"
#include "shm/client_mapping.h"

namespace hoplite::client {

struct CloseWindow {
  ClientMapping* mapping = nullptr;
  Extent extent;
  void operator()(std::byte*) const { mapping->close_window(extent); }
};

class WriteWindow {
 public:
  static Result<WriteWindow> open(ClientMapping& mapping, const ipc::Created& room, std::uint64_t wanted_bytes) {
    const Extent extent{room.offset, room.size};
    if (extent.size != wanted_bytes) return Error{Code::kInternal, "the daemon allocated a different size"};
    auto bytes = mapping.open_window(extent);
    if (!bytes) return bytes.error();
    return WriteWindow(mapping, extent, bytes->data());
  }

  WriteWindow() = default;

  ByteSpan bytes() const { return memory_ ? ByteSpan(memory_.get(), memory_.get_deleter().extent.size) : ByteSpan(); }
  void close() { memory_.reset(); }

 private:
  WriteWindow(ClientMapping& mapping, Extent extent, std::byte* memory)
      : memory_(memory, CloseWindow{&mapping, extent}) {}

  std::unique_ptr<std::byte[], CloseWindow> memory_;
};

}  // namespace hoplite::client
