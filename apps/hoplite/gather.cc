// hoplite gather.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/bytes.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"
#include "output.h"

namespace hoplite {
namespace {

struct GatherArguments {
  std::vector<std::string> ids;
  std::string folder;
  bool wait_if_lost = false;
  Timeout timeout;
};

// What was typed if it is a file name, else the id: names may have slashes and dots.
std::string file_name(const std::string& typed) {
  const bool plain = typed.find('/') == std::string::npos && !typed.starts_with('.') && typed.size() < 200;
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
  return Error{Code::kInvalidArgument, "cannot make the folder " + folder + ": " + error.message()};
}

int run_gather(const Common& common, const GatherArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  if (!arguments.folder.empty())
    if (auto made = make_folder(arguments.folder); !made) return fail(made.error());
  const std::vector<ObjectId> ids = ids_from(arguments.ids);
  const auto views = client->gather(ids, {arguments.timeout, arguments.wait_if_lost ? OnLost::kWait : OnLost::kFail});
  if (!views) return fail(views.error(), arguments.ids);

  const Interrupts interrupts;  // so that no half of a file stays behind
  JsonList list;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (interrupts.asked()) return fail("interrupted");
    const View& view = (*views)[i];
    JsonObject object;
    object.add("id", ids[i].to_string()).add("size", view.size());
    if (!arguments.folder.empty()) {
      const std::string path = arguments.folder + "/" + file_name(arguments.ids[i]);
      if (auto written = write_file(path, view); !written) return fail(written.error());
      object.add("file", path);
    }
    list.raw(object.text());
    if (!common.json) std::printf("%s  %s\n", arguments.ids[i].c_str(), format_size(view.size()).c_str());
  }
  if (common.json) std::printf("%s\n", JsonObject().raw("objects", list.text()).text().c_str());
  return kExitOk;
}

}  // namespace

void add_gather(Cli& cli) {
  auto arguments = std::make_shared<GatherArguments>();
  CLI::App& app = cli.subcommand("gather", "get many objects at the same time, and print their sizes",
                                 [&cli, arguments] { return run_gather(cli.common, *arguments); });
  app.add_option("ids", arguments->ids, "names or ids")->required()->type_name("ID")->check(names_an_object());
  app.add_option("-o,--output", arguments->folder, "write each to a file in this folder, named as it is here")
      ->type_name("DIR");
  app.add_flag("--wait-if-lost", arguments->wait_if_lost,
               "go on waiting when every copy was lost: somebody may put it again");
  add_timeout(app, arguments->timeout, "how long to wait for all of them, as 5s [no limit]");
}

}  // namespace hoplite
