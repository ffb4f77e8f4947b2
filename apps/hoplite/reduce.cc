// hoplite reduce, hoplite allreduce.
#include <cstdio>
#include <memory>

#include "base/limits.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"
#include "render.h"

namespace hoplite {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr auto kUntilTold = std::chrono::seconds(10);
constexpr std::size_t kMaxSources = Limits{}.max_sources;

struct ReduceArguments {
  std::vector<std::string> ids;
  std::string target;  // of --id, --add or --status
  ReduceOptions options;
  bool to_all = false;
  bool wait = false;

  std::string status_of;
  std::string add_to;

  // Everything that the user may have given a name to.
  std::vector<std::string> typed() const {
    std::vector<std::string> all = ids;
    for (const std::string& text : {target, status_of, add_to})
      if (!text.empty()) all.push_back(text);
    return all;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const std::string& text : typed())
      if (const std::string name = name_in(text); !name.empty()) all.push_back(name);
    return all;
  }
};

int fail_reduce(const Error& error, const ReduceArguments& arguments) {
  fail(error, arguments.typed());
  return error.code == Code::kInvalidArgument ? kExitUsage : kExitFailed;
}

void print_id(const Common& common, ObjectId id, const std::string& typed) {
  if (common.json)
    std::printf("%s\n", JsonObject().add("id", id.to_string()).add("name", name_in(typed)).text().c_str());
  else std::printf("%s\n", id.to_string().c_str());
  std::fflush(stdout);
}

// Whoever could tell how it went is gone: the target itself tells.
Result<ReduceStatus> result_without_status(Client& client, ObjectId target, const Error& why) {
  const auto view = client.get(target, {.timeout = kUntilTold});
  if (!view) return view.error().code == Code::kTimedOut ? why : view.error();
  ReduceStatus status;
  status.target = target;
  status.phase = ReducePhase::kDone;
  status.size = status.bytes = view->size();
  return status;
}

// Until the result is there, or never will be.
Result<ReduceStatus> wait_for_result(Client& client, ObjectId target) {
  const Interrupts interrupts;
  ProgressLine progress("reduce");
  while (true) {
    auto status = client.reduce_status(target);
    if (!status) return result_without_status(client, target, status.error());
    if (status->phase == ReducePhase::kFailed) return *status->error;
    if (status->phase == ReducePhase::kDone) return status;
    if (interrupts.asked())
      return Error{
          Code::kCancelled,
          "interrupted; the reduce continues: `hoplite reduce --status` shows its progress, `hoplite rm` cancels it"};
    progress.update(status->bytes, status->size, awaited_text(*status));
    if (const auto ready = client.wait({target}, 1, kRedraw); !ready) return ready.error();
  }
}

int run_start(const Common& common, const ReduceArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const std::vector<ObjectId> sources = ids_from(arguments.ids);
  ReduceOptions options = arguments.options;
  if (!arguments.target.empty()) options.target = ObjectId::from_text(arguments.target);
  options.names = arguments.names();
  const auto target = arguments.to_all ? client->allreduce(sources, options) : client->reduce(sources, options);
  if (!target) return fail_reduce(target.error(), arguments);
  if (!arguments.wait) {
    print_id(common, *target, arguments.target);
    return kExitOk;
  }
  if (!common.json) print_id(common, *target, arguments.target);
  const auto result = wait_for_result(*client, *target);
  if (!result) return fail(result.error(), arguments.typed());
  if (common.json) std::printf("%s\n", reduce_json(*result).c_str());
  return kExitOk;
}

int run_add(const Common& common, const ReduceArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const ObjectId target = ObjectId::from_text(arguments.add_to);
  const auto added = client->add_sources(target, ids_from(arguments.ids), kPromptTimeout, arguments.names());
  if (!added) return fail_reduce(added.error(), arguments);
  if (common.json) print_id(common, target, arguments.add_to);
  return kExitOk;
}

int run_status(const Common& common, const ReduceArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const auto status = client->reduce_status(ObjectId::from_text(arguments.status_of));
  if (!status) return fail(status.error(), arguments.status_of);
  const std::string text = common.json ? reduce_json(*status) + "\n" : reduce_text(*status, arguments.typed());
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

int run_reduce(const Common& common, const ReduceArguments& arguments) {
  if (!arguments.status_of.empty()) return run_status(common, arguments);
  if (!arguments.add_to.empty()) return run_add(common, arguments);
  return run_start(common, arguments);
}

// What starting a reduce and an allreduce have in common.
void add_start_options(CLI::App& app, ReduceArguments& arguments) {
  ReduceOptions& options = arguments.options;
  add_reduce_op(app, options.op, "the operation to apply, element by element: " + reduce_op_names() + " [sum]");
  add_dtype(app, options.type, "the element type of the sources: " + dtype_names() + " [f32]");
  app.add_option("--first", options.count, "reduce the first K sources that become ready [all]")
      ->type_name("K")
      ->check(CLI::Validator(
          [](std::string& text) {
            const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            const bool fits = number && text.size() <= 6 && std::stoul(text) > 0 && std::stoul(text) <= kMaxSources;
            return fits ? std::string()
                        : "'" + text + "' is not a number of sources, from 1 to " + std::to_string(kMaxSources);
          },
          ""));
  app.add_option("--id", arguments.target, "name or id of the result [a new id]")
      ->type_name("NAME")
      ->check(names_an_object());
  add_timeout(app, options.timeout, "fail the reduce if it takes longer than this, e.g. 5s [no limit]");
  add_priority(app, options.priority, "priority of the transfers that the reduce causes");
  app.add_option_function<std::string>(
         "--on-lost",
         [&options](const std::string& text) { options.on_lost = text == "wait" ? OnLost::kWait : OnLost::kFail; },
         "what to do if every copy of a source is lost: fail, or wait until somebody puts it again [fail]")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"fail", "wait"}));
  app.add_flag("--more-follow", options.more_sources_follow,
               "more sources will be added with --add, so --first may exceed the number of sources given now");
  app.add_flag("--wait,!--no-wait", arguments.wait,
               "wait for the result and show progress; otherwise return as soon as the reduce has started");
}

CLI::Option& add_ids(CLI::App& app, ReduceArguments& arguments) {
  return *app.add_option("ids", arguments.ids, "names or ids of the sources, which need not exist yet")
              ->type_name("ID")
              ->check(names_an_object());
}

// --status and --add are about a reduce that has begun: nothing of how to begin one goes with them. (CLI11's own excludes()
// would fill the help with every pair.)
void refuse_together(const CLI::App& app, const CLI::Option& status, const CLI::Option& add) {
  if (status.count() + add.count() == 0) return;
  const std::string mode = status.count() > 0 ? status.get_name() : add.get_name();
  if (status.count() > 0 && add.count() > 0) throw CLI::ExcludesError(mode, add.get_name());
  for (const char* option :
       {"--op", "--type", "--first", "--id", "--timeout", "--priority", "--on-lost", "--more-follow", "--wait"})
    if (app.count(option) > 0) throw CLI::ExcludesError(mode, option);
}

void add_reduce_command(Cli& cli) {
  auto arguments = std::make_shared<ReduceArguments>();
  CLI::App& app = cli.subcommand("reduce", "combine arrays from any nodes into a new object and print its id",
                                 [&cli, arguments] { return run_reduce(cli.common, *arguments); });
  add_start_options(app, *arguments);
  CLI::Option& ids = add_ids(app, *arguments);
  CLI::Option* status = app.add_option("--status", arguments->status_of,
                                       "show the progress of the reduce with this target instead of starting one")
                            ->type_name("ID")
                            ->check(names_an_object());
  CLI::Option* add =
      app.add_option("--add", arguments->add_to, "add sources to the reduce with this target instead of starting one")
          ->type_name("ID")
          ->check(names_an_object());
  app.parse_complete_callback([&app, &ids, status, add] {
    refuse_together(app, *status, *add);
    if (status->count() + ids.count() == 0) throw CLI::RequiredError("ID...");
    if (status->count() > 0 && ids.count() > 0) throw CLI::ExcludesError("--status", "ids of sources");
  });
  app.footer(
      "examples:\n"
      "  hoplite reduce --op sum --type f32 --first 3 --id total a b c d   reduce the first three\n"
      "  hoplite reduce --status total                                     show its sources and its tree\n"
      "  hoplite reduce --add total e                                      add a source\n"
      "  hoplite get total -o total.f32                                    wait for the result\n"
      "  hoplite rm total                                                  cancel the reduce");
}

void add_allreduce_command(Cli& cli) {
  auto arguments = std::make_shared<ReduceArguments>();
  arguments->to_all = true;
  CLI::App& app = cli.subcommand("allreduce", "like reduce, when every node that has a source will get the result",
                                 [&cli, arguments] { return run_start(cli.common, *arguments); });
  add_start_options(app, *arguments);
  app.add_option_function<std::string>(
         "--method",
         [arguments](const std::string& text) {
           arguments->options.spread = text == "whole"    ? Spread::kWhole
                                       : text == "slices" ? Spread::kSlices
                                                          : Spread::kByCost;
         },
         "whole: reduce on one node; slices: cut the result and reduce each slice on a different node; cost: whichever "
         "is faster [cost]")
      ->type_name("HOW")
      ->check(CLI::IsMember({"cost", "whole", "slices"}));
  add_ids(app, *arguments).required();
}

}  // namespace

void add_reduce(Cli& cli) {
  add_reduce_command(cli);
  add_allreduce_command(cli);
}

}  // namespace hoplite
