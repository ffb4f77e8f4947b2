// hoplite get.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"

namespace hoplite {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);

struct GetArguments {
  std::string id;
  std::string output;
  bool wait_if_lost = false;
  Timeout timeout;
};

// Where the bytes go. A file appears under its name only when it is complete.
class Output {
 public:
  static Result<std::unique_ptr<Output>> open(const std::string& path) {
    auto output = std::unique_ptr<Output>(new Output(path));
    struct stat status{};
    const bool special = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
    output->written_to_ = special ? path : path + ".part-" + std::to_string(::getpid());
    const int flags = special ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    output->file_.reset(::open(output->written_to_.c_str(), flags, 0666));
    if (!output->file_) return Error{Code::kInvalidArgument, "cannot write " + path + ": " + std::strerror(errno)};
    output->temporary_ = !special;
    return output;
  }
  ~Output() {
    if (temporary_) ::unlink(written_to_.c_str());
  }

  // The bytes from the front; those written before are not written again.
  Result<void> write_up_to(ByteView bytes) {
    while (done_ < bytes.size()) {
      const ssize_t n = ::write(file_.get(), bytes.data() + done_, bytes.size() - done_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed();
      done_ += static_cast<std::size_t>(n);
    }
    return {};
  }
  // What was written will never be complete.
  Result<void> start_over() {
    done_ = 0;
    if (temporary_ && (::lseek(file_.get(), 0, SEEK_SET) != 0 || ::ftruncate(file_.get(), 0) != 0)) return failed();
    return {};
  }
  Result<void> finish() {
    const int fd = file_.release();
    if (::close(fd) != 0) return failed();
    if (!temporary_) return {};
    if (::rename(written_to_.c_str(), path_.c_str()) != 0) return failed();
    temporary_ = false;
    return {};
  }

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}
  Error failed() const { return {Code::kInvalidArgument, "cannot write " + path_ + ": " + std::strerror(errno)}; }

  std::string path_;
  std::string written_to_;
  UniqueFd file_;
  bool temporary_ = false;
  std::size_t done_ = 0;
};

Result<std::uint64_t> get_to_file(Client& client, const GetArguments& arguments, ObjectId id,
                                  const GetOptions& options) {
  auto output = Output::open(arguments.output);
  if (!output) return output.error();
  auto follower = client.follow(id, options);
  if (!follower) return follower.error();
  const Interrupts interrupts;  // so that no half of a file stays behind
  ProgressLine progress("get");
  std::uint64_t size = 0;
  std::uint64_t bytes = 0;
  while (true) {
    if (interrupts.asked()) return Error{Code::kCancelled, "interrupted"};
    progress.update(bytes, size);
    const auto step = follower->next(kRedraw);
    if (!step && step.code() == Code::kTimedOut && !follower->ended()) continue;  // only this step's time is over
    if (!step) return step.error();
    const auto written =
        step->event == Follower::Event::kReset ? (*output)->start_over() : (*output)->write_up_to(step->bytes);
    if (!written) return written.error();
    size = step->size;
    bytes = step->bytes.size();
    if (step->event != Follower::Event::kComplete) continue;
    progress.clear();
    if (auto finished = (*output)->finish(); !finished) return finished.error();
    return size;
  }
}

// A pipe cannot be rewound: only what is final goes there.
Result<std::uint64_t> get_to_stdout(Client& client, ObjectId id, const GetOptions& options) {
  const auto view = client.get(id, options);
  if (!view) return view.error();
  std::size_t done = 0;
  while (done < view->size()) {
    const ssize_t n = ::write(STDOUT_FILENO, view->data() + done, view->size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return Error{Code::kInvalidArgument, std::string("cannot write to standard output: ") + std::strerror(errno)};
    done += static_cast<std::size_t>(n);
  }
  return view->size();
}

int run_get(const Common& common, const GetArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const ObjectId id = ObjectId::from_text(arguments.id);
  const GetOptions options{arguments.timeout, arguments.wait_if_lost ? OnLost::kWait : OnLost::kFail};
  if (arguments.output.empty()) {
    const auto size = get_to_stdout(*client, id, options);
    return size ? kExitOk : fail(size.error(), arguments.id);
  }
  const auto size = get_to_file(*client, arguments, id, options);
  if (!size) return fail(size.error(), arguments.id);
  if (common.json)
    std::printf("%s\n",
                JsonObject().add("id", id.to_string()).add("size", *size).add("file", arguments.output).text().c_str());
  return kExitOk;
}

}  // namespace

void add_get(Cli& cli) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App& app = cli.subcommand("get", "wait for an object, and write its bytes to a file or to standard output",
                                 [&cli, arguments] { return run_get(cli.common, *arguments); });
  app.add_option("id", arguments->id, "a name or an id")->required()->type_name("ID")->check(names_an_object());
  app.add_option("-o,--output", arguments->output, "write to this file [standard output]")->type_name("FILE");
  app.add_flag("--wait-if-lost", arguments->wait_if_lost,
               "go on waiting when every copy was lost: somebody may put it again");
  add_timeout(app, arguments->timeout, "how long to wait, as 5s [no limit]");
}

}  // namespace hoplite
