#include "cli.h"

#include <cstdio>
#include <set>

#include "base/bytes.h"
#include "base/paths.h"
#include "base/printable.h"

namespace hoplite {
namespace {

// An option whose value is a word that `parse` knows; `names` are all of them.
template <typename Value>
void add_word(CLI::App& app, const std::string& option, const std::string& type_name, Value& value,
              std::optional<Value> (*parse)(std::string_view), const std::string& names, const std::string& help) {
  app.add_option_function<std::string>(
         option,
         [&value, parse, option, names](const std::string& text) {
           const auto parsed = parse(text);
           if (!parsed) throw CLI::ValidationError(option, text + " is not one of " + names);
           value = *parsed;
         },
         help)
      ->type_name(type_name);
}

template <typename Enum>
std::string names_from(Enum first) {
  std::string names;
  for (auto value = first; value <= last_enumerator(Enum{}); value = static_cast<Enum>(static_cast<int>(value) + 1))
    names += (names.empty() ? "" : " ") + std::string(to_string(value));
  return names;
}

}  // namespace

CLI::App& Cli::bare_subcommand(const std::string& name, const std::string& help, std::function<int()> run) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->callback([this, run = std::move(run)] { chosen = run; });
  return *sub;
}

void Cli::add_common(CLI::App& to) {
  to.add_option("--socket", common.socket,
                "the daemon's socket; defaults to $HOPLITE_SOCKET, then to [" + default_socket_path() + "]")
      ->type_name("PATH");
  to.add_flag("--json", common.json, "print JSON");
}

CLI::App& Cli::subcommand(const std::string& name, const std::string& help, std::function<int()> run) {
  CLI::App& sub = bare_subcommand(name, help, std::move(run));
  add_common(sub);
  return sub;
}

int fail(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "hoplite: %s\n", printable(message).c_str());
  return kExitFailed;
}

int fail(const Error& error, const std::string& typed) {
  return fail(error, typed.empty() ? std::vector<std::string>() : std::vector{typed});
}

int fail(const Error& error, const std::vector<std::string>& typed) {
  // For these the kind is half of the news; the others say it themselves.
  const bool say_kind = error.code == Code::kTimedOut || error.code == Code::kLost || error.code == Code::kDeleted ||
                        error.code == Code::kExists || error.code == Code::kStoreFull ||
                        error.code == Code::kTypeMismatch || error.code == Code::kSizeMismatch;
  std::string message = say_kind ? error.to_string() : error.message;
  for (const std::string& name : std::set(typed.begin(), typed.end())) {
    const std::string id = ObjectId::from_text(name).to_string();
    const std::size_t at = id == name ? std::string::npos : message.find(id);
    // The daemon says it, too, if it knows.
    if (at != std::string::npos && !message.substr(0, at).ends_with(name + " = ")) message.insert(at, name + " = ");
  }
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

void add_dtype(CLI::App& app, DType& type, const std::string& help) {
  add_word(app, "--type", "TYPE", type, parse_dtype, dtype_names(), help);
}

void add_reduce_op(CLI::App& app, ReduceOp& op, const std::string& help) {
  add_word(app, "--op", "OP", op, parse_reduce_op, reduce_op_names(), help);
}

void add_priority(CLI::App& app, Priority& priority, const std::string& what) {
  add_word(app, "--priority", "CLASS", priority, parse_priority, priority_names(),
           what + ": " + priority_names() + " [normal]");
}

std::string dtype_names() { return names_from(DType::kF32); }
std::string reduce_op_names() { return names_from(ReduceOp::kSum); }
std::string priority_names() { return names_from(Priority::kLow); }

std::vector<ObjectId> ids_from(const std::vector<std::string>& typed) {
  std::vector<ObjectId> ids;
  for (const std::string& text : typed) ids.push_back(ObjectId::from_text(text));
  return ids;
}

CLI::Validator names_an_object() {
  return {[](const std::string& text) -> std::string {
            if (text.empty()) return "the name or id of an object must not be empty";
            return ObjectId::from_text(text).is_nil() ? "the nil id (all zeros) does not identify an object" : "";
          },
          ""};
}

std::string name_in(const std::string& typed) { return ObjectId::parse(typed) ? "" : typed; }

}  // namespace hoplite
