// A file that the command line writes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"

namespace hoplite {

// Where the bytes go. A file appears under its name only when it is complete.
class Output {
 public:
  static Result<std::unique_ptr<Output>> open(const std::string& path);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // The bytes from the front; those written before are not written again.
  Result<void> write_up_to(ByteView bytes);
  // What was written will never be complete.
  Result<void> start_over();
  Result<void> finish();

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}
  Error failed() const;

  std::string path_;
  std::string written_to_;
  UniqueFd file_;
  bool temporary_ = false;
  std::size_t done_ = 0;
};

}  // namespace hoplite
