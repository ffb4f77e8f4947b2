#include "cli.h"

#include <cstdio>

#include "base/bytes.h"

namespace hoplite {
namespace {

constexpr std::string_view kNamePrefix = "name=";

}  // namespace

CLI::App& Cli::bare_subcommand(const std::string& name, const std::string& help, std::function<int()> run) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->callback([this, run = std::move(run)] { chosen = run; });
  return *sub;
}

CLI::App& Cli::subcommand(const std::string& name, const std::string& help, std::function<int()> run) {
  CLI::App& sub = bare_subcommand(name, help, std::move(run));
  sub.add_option("--socket", common.socket, "the daemon's socket; without it $HOPLITE_SOCKET, else the default")
      ->type_name("PATH");
  sub.add_flag("--json", common.json, "print JSON");
  return sub;
}

int fail(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "hoplite: %s\n", message.c_str());
  return kExitFailed;
}

int fail(const Error& error, const std::string& typed) {
  // For these the kind is half of the news; the others say it themselves.
  const bool say_kind = error.code == Code::kTimedOut || error.code == Code::kLost || error.code == Code::kDeleted ||
                        error.code == Code::kExists || error.code == Code::kStoreFull;
  std::string message = say_kind ? error.to_string() : error.message;
  const std::string id = typed.empty() ? "" : ObjectId::from_text(typed).to_string();
  const std::size_t at = id.empty() || id == typed ? std::string::npos : message.find(id);
  if (at != std::string::npos) message.insert(at, typed + " = ");
  return fail(message);
}

Result<Client> connect(const Common& common) { return Client::connect({.socket = common.socket}); }

void add_timeout(CLI::App& app, Timeout& timeout, const std::string& help) {
  app.add_option_function<std::string>(
         "--timeout",
         [&timeout](const std::string& text) {
           const auto duration = parse_duration(text);
           if (!duration) throw CLI::ValidationError("--timeout", duration.error().message);
           timeout = std::chrono::nanoseconds(duration->ns);
         },
         help)
      ->type_name("TIME");
}

std::string name_of(const ObjectStatus& object) {
  if (!object.metadata.starts_with(kNamePrefix)) return "";
  return object.metadata.substr(kNamePrefix.size());
}

CLI::Validator names_an_object() {
  return {[](const std::string& text) -> std::string {
            if (text.empty()) return "an object has a name or an id";
            return ObjectId::from_text(text).is_nil() ? "the nil id names no object" : "";
          },
          ""};
}

std::string metadata_for(const std::string& typed_id) {
  if (typed_id.empty() || ObjectId::parse(typed_id)) return "";
  return std::string(kNamePrefix) + typed_id;
}

}  // namespace hoplite
