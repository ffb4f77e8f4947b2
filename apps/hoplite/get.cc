// hoplite get.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"
#include "output.h"

namespace hoplite {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);

struct GetArguments {
  std::string id;
  std::string output;
  bool wait_if_lost = false;
  Timeout timeout;
  Priority priority = Priority::kNormal;
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
  const GetOptions options{.timeout = arguments.timeout,
                           .on_lost = arguments.wait_if_lost ? OnLost::kWait : OnLost::kFail,
                           .priority = arguments.priority};
  if (arguments.output.empty() || arguments.output == "-") {
    const auto size = get_to_stdout(*client, id, options);
    return size ? kExitOk : fail(size.error(), arguments.id);
  }
  const auto size = get_to_file(*client, arguments, id, options);
  if (!size) return fail(size.error(), arguments.id);
  if (common.json)
    std::printf("%s\n", JsonObject()
                            .add("id", id.to_string())
                            .add("name", name_in(arguments.id))
                            .add("size", *size)
                            .add("file", arguments.output)
                            .text()
                            .c_str());
  return kExitOk;
}

}  // namespace

void add_get(Cli& cli) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App& app = cli.subcommand("get", "wait for an object and write its bytes to a file or to standard output",
                                 [&cli, arguments] { return run_get(cli.common, *arguments); });
  app.add_option("id", arguments->id, "the name or id of the object")
      ->required()
      ->type_name("ID")
      ->check(names_an_object());
  app.add_option("-o,--output", arguments->output, "the file to write; - means standard output [-]")->type_name("FILE");
  app.add_flag("--wait-if-lost", arguments->wait_if_lost,
               "keep waiting if every copy is lost, in case somebody puts the object again");
  add_timeout(app, arguments->timeout, "how long to wait, e.g. 5s [no limit]");
  add_priority(app, arguments->priority, "priority of the transfer");
}

}  // namespace hoplite
