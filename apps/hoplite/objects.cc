// hoplite put, hoplite wait, hoplite rm.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/printable.h"
#include "base/unique_fd.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"
#include "render.h"

namespace hoplite {
namespace {

constexpr auto kLongEviction = std::chrono::milliseconds(200);
constexpr std::size_t kReadStep = 4 * kMiB;  // how often readers elsewhere hear of a file's progress

struct PutArguments {
  std::string file;
  std::string id;
  ArrayType array;
  Timeout timeout;
  Priority priority = Priority::kNormal;
};

// "2,3"; nullopt if it is anything else.
std::optional<std::vector<std::uint64_t>> parse_shape(std::string_view text) {
  std::vector<std::uint64_t> shape;
  while (true) {
    std::uint64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc()) return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return shape;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
}

Error read_error(const std::string& file) {
  return {Code::kInvalidArgument, "cannot read " + file + ": " + std::strerror(errno)};
}

// Reads up to to.size() bytes; fewer only at the end of the input.
Result<std::size_t> read_some(int fd, ByteSpan to, const std::string& file) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t n = ::read(fd, to.data() + done, to.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return read_error(file);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

// Room in the store. If somebody else has it, says so at once.
Result<ObjectWriter> create_when_there_is_room(Client& client, std::uint64_t size, const PutOptions& options) {
  auto creating = client.create_async(size, options);
  // Room that takes longer than this is not a matter of evicting something.
  if (creating.wait_for(kLongEviction)) return creating.get();
  const auto status = client.status();
  const auto objects = client.objects();
  if (status && objects && !creating.wait_for(std::chrono::milliseconds(0)))
    std::fprintf(stderr, "hoplite: %s\n", printable(room_text(size, *status, *objects)).c_str());
  return creating.get();
}

Result<ObjectId> put_bytes(Client& client, ByteView bytes, const PutOptions& options) {
  if (bytes.empty()) return client.put(bytes, options);
  auto writer = create_when_there_is_room(client, bytes.size(), options);
  if (!writer) return writer.error();
  std::memcpy(writer->buffer().data(), bytes.data(), bytes.size());
  return writer->seal(options.timeout);
}

// Straight from the file into the store; others may already fetch what has been read.
Result<ObjectId> put_file(Client& client, int fd, std::uint64_t size, const PutArguments& arguments,
                          const PutOptions& options) {
  auto writer = create_when_there_is_room(client, size, options);
  if (!writer) return writer.error();
  const ByteSpan buffer = writer->buffer();
  ProgressLine progress("put");
  for (std::size_t at = 0; at < buffer.size();) {
    const ByteSpan step = buffer.subspan(at, std::min(kReadStep, buffer.size() - at));
    const auto read = read_some(fd, step, arguments.file);
    if (!read) return read.error();
    if (*read < step.size())
      return Error{Code::kInvalidArgument, arguments.file + " was truncated while it was being read"};
    at += *read;
    if (auto advanced = writer->advance(at); !advanced) return advanced.error();
    progress.update(at, size);
  }
  return writer->seal(options.timeout);
}

// Input of unknown size has to be read to its end before there can be an object.
Result<ObjectId> put_stream(Client& client, int fd, const PutArguments& arguments, const PutOptions& options) {
  const auto store = client.status();
  if (!store) return store.error();
  std::vector<std::byte> bytes;
  while (true) {
    if (bytes.size() > store->capacity_bytes)
      return Error{Code::kStoreFull, arguments.file + " is larger than the store of " +
                                         format_size(store->capacity_bytes) + ": " + format_size(bytes.size()) +
                                         " have been read, and there is more"};
    const std::size_t before = bytes.size();
    bytes.resize(before + std::max(kReadStep, before));
    const auto read = read_some(fd, ByteSpan(bytes).subspan(before), arguments.file);
    if (!read) return read.error();
    const bool end = before + *read < bytes.size();
    bytes.resize(before + *read);
    if (end) return put_bytes(client, bytes, options);
  }
}

Result<ObjectId> put(Client& client, const PutArguments& arguments) {
  PutOptions options;
  if (!arguments.id.empty()) options.id = ObjectId::from_text(arguments.id);
  options.name = name_in(arguments.id);
  options.array = arguments.array;
  options.timeout = arguments.timeout;
  options.priority = arguments.priority;
  if (arguments.file == "-") return put_stream(client, STDIN_FILENO, arguments, options);
  const UniqueFd file(::open(arguments.file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return read_error(arguments.file);
  if (S_ISREG(status.st_mode) && status.st_size > 0)
    return put_file(client, file.get(), static_cast<std::uint64_t>(status.st_size), arguments, options);
  return put_stream(client, file.get(), arguments, options);
}

int run_put(const Common& common, const PutArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const auto id = put(*client, arguments);
  if (!id) return fail(id.error(), arguments.id);
  if (common.json)
    std::printf("%s\n", JsonObject().add("id", id->to_string()).add("name", name_in(arguments.id)).text().c_str());
  else std::printf("%s\n", id->to_string().c_str());
  return kExitOk;
}

// --- wait

struct WaitArguments {
  std::vector<std::string> ids;
  std::size_t count = 0;
  Timeout timeout;
};

int run_wait(const Common& common, const WaitArguments& arguments) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const std::vector<ObjectId> ids = ids_from(arguments.ids);
  const std::size_t distinct = std::set<ObjectId>(ids.begin(), ids.end()).size();
  if (arguments.count > distinct) {
    fail("--count " + std::to_string(arguments.count) + " of " + std::to_string(distinct) + " objects");
    return kExitUsage;
  }
  const std::size_t count = arguments.count == 0 ? distinct : arguments.count;
  const auto waited = client->wait_or_gone(ids, count, arguments.timeout);
  if (!waited) return fail(waited.error());
  const std::vector<ObjectId>& ready = waited->ready;
  JsonList list;
  std::map<Code, JsonList> gone;
  std::string text_gone;
  std::string missing;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto over =
        std::find_if(waited->gone.begin(), waited->gone.end(), [&](const auto& g) { return g.id == ids[i]; });
    if (over != waited->gone.end()) {
      gone[over->why].raw(json_string(ids[i].to_string()));
      text_gone += (text_gone.empty() ? "" : ", ") + arguments.ids[i] + " (" + std::string(code_name(over->why)) + ")";
    } else if (std::find(ready.begin(), ready.end(), ids[i]) == ready.end()) {
      missing += (missing.empty() ? "" : ", ") + arguments.ids[i];
    } else {
      list.raw(json_string(ids[i].to_string()));
      if (!common.json) std::printf("%s\n", printable(arguments.ids[i]).c_str());
    }
  }
  if (common.json) {
    JsonObject object;
    object.raw("ready", list.text());
    for (auto& [why, names] : gone) object.raw(std::string(code_name(why)), names.text());
    std::printf("%s\n", object.text().c_str());
  }
  if (ready.size() >= count) return kExitOk;
  const std::string so_far = std::to_string(ready.size()) + " of " + std::to_string(count) + " objects are ready; ";
  if (ids.size() - waited->gone.size() < count) return fail(so_far + text_gone + " will not be, unless put again");
  return fail("timed out: " + so_far + "nobody has put " + missing +
              (text_gone.empty() ? "" : "; " + text_gone + " will not be ready, unless put again"));
}

// --- fail

int run_fail(const Common& common, const std::string& id, const std::string& reason, const Timeout& timeout) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const auto failed = client->fail(ObjectId::from_text(id), reason, {}, timeout);
  if (!failed) return fail(failed.error(), id);
  if (common.json) std::printf("%s\n", JsonObject().add("failed", failed->to_string()).text().c_str());
  else std::printf("%s\n", printable(id).c_str());
  return kExitOk;
}

// --- rm

int run_remove(const Common& common, const std::vector<std::string>& ids, const Timeout& timeout) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  JsonList removed;
  int exit_code = kExitOk;
  for (const std::string& text : ids) {
    const ObjectId id = ObjectId::from_text(text);
    const auto existed = client->remove(id, timeout);
    if (!existed) {
      exit_code = fail(existed.error(), text);
    } else if (!*existed) {
      exit_code = fail("there is no object " + text);
    } else if (common.json) {
      removed.raw(json_string(id.to_string()));
    } else {
      std::printf("removed %s\n", printable(text).c_str());
    }
  }
  if (common.json) std::printf("%s\n", JsonObject().raw("removed", removed.text()).text().c_str());
  return exit_code;
}

}  // namespace

void add_objects(Cli& cli) {
  auto put_arguments = std::make_shared<PutArguments>();
  CLI::App& put_app = cli.subcommand("put", "store a file as an object and print its id",
                                     [&cli, put_arguments] { return run_put(cli.common, *put_arguments); });
  put_app.add_option("file", put_arguments->file, "the file to store; - means standard input")
      ->required()
      ->type_name("FILE|-");
  put_app.add_option("--id", put_arguments->id, "the object's name, or its id as 32 hexadecimal digits [a new id]")
      ->type_name("NAME")
      ->check(names_an_object());
  add_dtype(put_app, put_arguments->array.type, "the element type of the array; a reduce checks it");
  put_app
      .add_option_function<std::string>(
          "--shape",
          [put_arguments](const std::string& text) {
            const auto shape = parse_shape(text);
            if (!shape) throw CLI::ValidationError("--shape", text + " is not a shape such as 2,3");
            put_arguments->array.shape = *shape;
          },
          "the dimensions of the array, outermost first, e.g. 2,3")
      ->type_name("N,N,...");
  add_timeout(put_app, put_arguments->timeout, "how long to wait for space in the store, e.g. 5s [no limit]");
  add_priority(put_app, put_arguments->priority, "priority of transfers of this object from this node");

  auto wait_arguments = std::make_shared<WaitArguments>();
  CLI::App& wait_app = cli.subcommand("wait", "wait until objects exist and print those that do",
                                      [&cli, wait_arguments] { return run_wait(cli.common, *wait_arguments); });
  wait_app.add_option("ids", wait_arguments->ids, "names or ids of the objects")
      ->required()
      ->type_name("ID")
      ->check(names_an_object());
  wait_app.add_option("--count", wait_arguments->count, "return when this many objects exist [all]")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, LibraryLimits{}.max_wait_ids));
  add_timeout(wait_app, wait_arguments->timeout, "how long to wait, e.g. 5s [no limit]");

  auto failing = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  auto answer_within = std::make_shared<Timeout>();
  CLI::App& fail_app = cli.subcommand(
      "fail", "commit a failure in place of an object that cannot be put: every get of it ends with the reason",
      [&cli, failing, reason, answer_within] { return run_fail(cli.common, *failing, *reason, *answer_within); });
  fail_app.add_option("id", *failing, "the name or id that was promised")
      ->required()
      ->type_name("ID")
      ->check(names_an_object());
  fail_app.add_option("reason", *reason, "what went wrong, for whoever waits for the object")
      ->required()
      ->type_name("REASON");
  add_timeout(fail_app, *answer_within, "how long to wait for the answer, e.g. 5s [no limit]");

  auto ids = std::make_shared<std::vector<std::string>>();
  auto timeout = std::make_shared<Timeout>();
  CLI::App& remove_app = cli.subcommand("rm", "delete all copies of objects, on every node",
                                        [&cli, ids, timeout] { return run_remove(cli.common, *ids, *timeout); });
  remove_app.add_option("ids", *ids, "names or ids of the objects")
      ->required()
      ->type_name("ID")
      ->check(names_an_object());
  add_timeout(remove_app, *timeout, "how long to wait for confirmation, e.g. 5s [no limit]");
}

}  // namespace hoplite
