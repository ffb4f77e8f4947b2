// A part of the arena that this process may write, for as long as the window lives.
#pragma once

#include <utility>

#include "shm/client_mapping.h"

namespace hoplite::client {

class WriteWindow {
 public:
  static Result<WriteWindow> open(ClientMapping& mapping, Extent extent) {
    if (!mapping.writable()) return Error{Code::kInternal, "the daemon did not pass the descriptor to write with"};
    auto bytes = mapping.open_window(extent);
    if (!bytes) return bytes.error();
    return WriteWindow(mapping, extent, *bytes);
  }

  WriteWindow() = default;
  WriteWindow(WriteWindow&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        extent_(other.extent_),
        bytes_(std::exchange(other.bytes_, {})) {}
  WriteWindow& operator=(WriteWindow&& other) noexcept {
    if (this != &other) {
      close();
      mapping_ = std::exchange(other.mapping_, nullptr);
      extent_ = other.extent_;
      bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
  }
  ~WriteWindow() { close(); }

  ByteSpan bytes() const { return bytes_; }
  void close() {
    if (mapping_ != nullptr) mapping_->close_window(extent_);
    mapping_ = nullptr;
    bytes_ = {};
  }

 private:
  WriteWindow(ClientMapping& mapping, Extent extent, ByteSpan bytes)
      : mapping_(&mapping), extent_(extent), bytes_(bytes) {}

  ClientMapping* mapping_ = nullptr;
  Extent extent_;
  ByteSpan bytes_;
};

}  // namespace hoplite::client
