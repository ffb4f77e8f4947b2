// What stands behind the public handles, each of which keeps the connection, and with it the mapping, alive; and how a request
// becomes a Future of what the user sees.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "client/access.h"
#include "client/connection.h"
#include "client/write_window.h"
#include "hoplite/client.h"

namespace hoplite::client {

using Sending = Connection::Sending;
using Link = std::shared_ptr<Connection>;

struct Viewing {
  explicit Viewing(const Link& link) : connection(link), born(link->hold()) {}

  Link connection;
  std::uint64_t born;
  ObjectId id;
  CopyKey copy = 0;
  ByteView bytes;
  std::string metadata;
  ArrayType array;
  bool failure = false;

  ~Viewing() {
    connection->release(copy, born);
    connection->let_go_of_hold();
  }
};

struct Writing {
  Link connection;
  ObjectId id;
  CopyKey copy = 0;
  DType type = DType::kBytes;
  WriteWindow window;
  std::size_t advanced = 0;  // what the user said
  std::size_t told = 0;      // what the daemon knows
  bool open = true;          // neither sealed nor given up
};

struct Reading {
  explicit Reading(const Link& link) : connection(link), born(link->hold()) {}

  Link connection;
  std::uint64_t born;
  std::shared_ptr<Call> call;
  std::uint64_t seen_resets = 0;
  bool seen_size = false;  // of what grows now
  std::uint64_t seen_bytes = 0;
  hoplite::View complete;
  std::optional<Error> failed;

  ~Reading() {
    connection->abandon(*call);
    connection->let_go_of_hold();
  }
};

// --- replies as the user sees them. A reply of another kind than expected, or outside the arena, is kInternal.

Error unexpected(const Subject& subject);
Result<hoplite::View> to_view(const Link& connection, const Call& call, Result<ipc::Reply> reply);
Result<std::unique_ptr<Writing>> to_writing(const Link& connection, const Call& call, Result<ipc::Reply> reply);

// `Made` is how a message of this kind becomes the result: one of its fields, or a function.
template <typename Message, auto Made>
auto from_reply(const Link&, const Call& call, Result<ipc::Reply> reply)
    -> Result<std::remove_cvref_t<std::invoke_result_t<decltype(Made), Message&&>>> {
  if (!reply) return reply.error();
  auto* message = std::get_if<Message>(&*reply);
  if (message == nullptr) return unexpected(call.subject);
  return std::invoke(Made, std::move(*message));
}
constexpr auto to_id = from_reply<ipc::PutDone, &ipc::PutDone::id>;

// --- requests

std::shared_ptr<Call> new_call(const Subject& subject, const Deadline& deadline);
Result<void> check_id(const Subject& subject);

template <auto Convert>
auto start(const Link& connection, const std::shared_ptr<Call>& call, const ipc::Request& message, Sending sending,
           ByteView payload = {}) {
  connection->submit(call, message, sending, payload);
  return Access::future<Convert>(connection, call);
}

// Without a request.
template <auto Convert>
auto start_ended(const Link& connection, Result<ipc::Reply> result) {
  const auto call = std::make_shared<Call>();
  connection->submit_ended(call, std::move(result));
  return Access::future<Convert>(connection, call);
}

// Of an object that there must be.
template <auto Convert>
auto start_about(const Link& connection, const Subject& subject, const Timeout& timeout, const ipc::Request& message,
                 Sending sending) {
  if (auto ok = check_id(subject); !ok) return start_ended<Convert>(connection, ok.error());
  return start<Convert>(connection, new_call(subject, Deadline::after(timeout)), message, sending);
}

// What travels as the metadata of an object of `size` bytes; kInvalidArgument if the options do not fit it or each other.
Result<std::string> encoded_metadata(const Subject& subject, const PutOptions& options, std::uint64_t size,
                                     bool failure = false);

// An error if it has ended, or nobody is there any more to take it.
Result<void> check_open(const Writing& writing);
Result<void> advance(Writing& writing, std::size_t bytes);
void give_up(Writing& writing);
Future<ObjectId> start_seal(Writing& writing, const Deadline& deadline, Sending sending);
std::shared_ptr<Call> new_get_call(ObjectId id, const GetOptions& options, const Deadline& deadline);
ipc::Get get_request(ObjectId id, const GetOptions& options, const Deadline& deadline);

}  // namespace hoplite::client
