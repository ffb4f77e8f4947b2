#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace hoplite {

Result<std::unique_ptr<Output>> Output::open(const std::string& asked_path) {
  // What a link points to is replaced, not the link.
  std::error_code no_such_file;
  const std::filesystem::path real = std::filesystem::canonical(asked_path, no_such_file);
  const std::string path = no_such_file ? asked_path : real.string();
  auto output = std::unique_ptr<Output>(new Output(path));
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  const bool special = exists && !S_ISREG(status.st_mode);
  if (exists && ::access(path.c_str(), W_OK) != 0) return output->failed();
  output->written_to_ = special ? path : path + ".part-" + std::to_string(::getpid());
  const int flags = special ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  output->file_.reset(::open(output->written_to_.c_str(), flags, exists ? 0600 : 0666));
  if (!output->file_) return output->failed();
  // It is as private as the file that it replaces.
  if (exists && !special && ::fchmod(output->file_.get(), status.st_mode & 07777) != 0) return output->failed();
  output->temporary_ = !special;
  return output;
}

Output::~Output() {
  if (temporary_) ::unlink(written_to_.c_str());
}

Result<void> Output::write_up_to(ByteView bytes) {
  while (done_ < bytes.size()) {
    const ssize_t n = ::write(file_.get(), bytes.data() + done_, bytes.size() - done_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed();
    done_ += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> Output::start_over() {
  done_ = 0;
  if (temporary_ && (::lseek(file_.get(), 0, SEEK_SET) != 0 || ::ftruncate(file_.get(), 0) != 0)) return failed();
  return {};
}

Result<void> Output::finish() {
  const int fd = file_.release();
  if (::close(fd) != 0) return failed();
  if (!temporary_) return {};
  if (::rename(written_to_.c_str(), path_.c_str()) != 0) return failed();
  temporary_ = false;
  return {};
}

Error Output::failed() const { return {Code::kInvalidArgument, "cannot write " + path_ + ": " + std::strerror(errno)}; }

}  // namespace hoplite
