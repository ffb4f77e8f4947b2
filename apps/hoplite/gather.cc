// hoplite gather.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "base/bytes.h"
#include "base/printable.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"
#include "output.h"

namespace hoplite {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);

struct GatherArguments {
  std::vector<std::string> ids;
  std::string folder;
  bool wait_if_lost = false;
  Timeout timeout;
  Priority priority = Priority::kNormal;
};

// What was typed if it is a decent file name, else the id: names may have slashes, dots and anything else.
std::string file_name(const std::string& typed) {
  const bool plain = typed.find('/') == std::string::npos && !typed.starts_with('.') && typed.size() < 200 &&
                     printable(typed) == typed;
  return plain ? typed : ObjectId::from_text(typed).to_string();
}

Result<void> write_file(const std::string& path, const View& view) {
  auto output = Output::open(path);
  if (!output) return output.error();
  if (auto written = (*output)->write_up_to(view.bytes()); !written) return written.error();
  return (*output)->finish();
}

Result<void> make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  return Error{Code::kInvalidArgument, "cannot create the directory " + folder + ": " + error.message()};
}

// What has arrived, from the client's thread to ours.
class Arrivals {
 public:
  void add(std::size_t index, Result<View> view) {
    const std::lock_guard lock(mutex_);
    arrived_.emplace_back(index, std::move(view));
    changed_.notify_one();
  }
  // The next one; nothing if none comes for a while.
  std::optional<std::pair<std::size_t, Result<View>>> next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kRedraw, [&] { return !arrived_.empty(); })) return std::nullopt;
    auto first = std::move(arrived_.front());
    arrived_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::size_t, Result<View>>> arrived_;
};

struct Gathered {
  std::uint64_t size = 0;
  std::string file;  // "" if it was not to be written
};

// Each is written and let go as it comes, so that all of them need not fit into the store at once.
Result<std::vector<Gathered>> gather(Client& client, const GatherArguments& arguments,
                                     const std::vector<ObjectId>& ids) {
  const Interrupts interrupts;  // so that no half of a file stays behind
  ProgressLine progress("gather");
  const auto arrivals = std::make_shared<Arrivals>();
  const GetOptions options{.timeout = arguments.timeout,
                           .on_lost = arguments.wait_if_lost ? OnLost::kWait : OnLost::kFail,
                           .priority = arguments.priority};
  for (std::size_t i = 0; i < ids.size(); ++i)
    client.get_async(ids[i], options).then([arrivals, i](Result<View> view) { arrivals->add(i, std::move(view)); });
  std::vector<Gathered> all(ids.size());
  std::uint64_t bytes = 0;
  for (std::size_t done = 0; done < ids.size();) {
    if (interrupts.asked()) return Error{Code::kCancelled, "interrupted"};
    progress.update(bytes, 0, std::to_string(done) + " of " + std::to_string(ids.size()) + " objects");
    const auto arrived = arrivals->next();
    if (!arrived) continue;
    const auto& [index, view] = *arrived;
    if (!view) return view.error();
    all[index].size = view->size();
    bytes += view->size();
    ++done;
    if (arguments.folder.empty()) continue;
    all[index].file = arguments.folder + "/" + file_name(arguments.ids[index]);
    if (auto written = write_file(all[index].file, *view); !written) return written.error();
  }
  return all;
}

int run_gather(const Common& common, const GatherArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  if (!arguments.folder.empty())
    if (auto made = make_folder(arguments.folder); !made) return fail(made.error());
  const std::vector<ObjectId> ids = ids_from(arguments.ids);
  const auto all = gather(*client, arguments, ids);
  if (!all) return fail(all.error(), arguments.ids);
  JsonList list;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Gathered& one = (*all)[i];
    JsonObject object;
    object.add("id", ids[i].to_string()).add("name", name_in(arguments.ids[i])).add("size", one.size);
    if (!one.file.empty()) object.add("file", one.file);
    list.raw(object.text());
    if (!common.json) std::printf("%s  %s\n", printable(arguments.ids[i]).c_str(), format_size(one.size).c_str());
  }
  if (common.json) std::printf("%s\n", JsonObject().raw("objects", list.text()).text().c_str());
  return kExitOk;
}

}  // namespace

void add_gather(Cli& cli) {
  auto arguments = std::make_shared<GatherArguments>();
  CLI::App& app = cli.subcommand("gather", "get several objects at once and print their sizes",
                                 [&cli, arguments] { return run_gather(cli.common, *arguments); });
  app.add_option("ids", arguments->ids, "names or ids of the objects")
      ->required()
      ->type_name("ID")
      ->check(names_an_object());
  app.add_option("-o,--output", arguments->folder,
                 "write each object to a file in this directory, named as on the command line")
      ->type_name("DIR");
  app.add_flag("--wait-if-lost", arguments->wait_if_lost,
               "keep waiting if every copy of an object is lost, in case somebody puts it again");
  add_timeout(app, arguments->timeout, "how long to wait for all objects, e.g. 5s [no limit]");
  add_priority(app, arguments->priority, "priority of the transfers");
}

}  // namespace hoplite
