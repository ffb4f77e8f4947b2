// What stands behind the public handles. Each keeps the connection, and with it the mapping, alive.
#pragma once

#include <memory>
#include <string>

#include "client/connection.h"
#include "client/write_window.h"
#include "hoplite/client.h"

namespace hoplite {

struct View::State {
  std::shared_ptr<client::Connection> connection;
  CopyKey copy = 0;
  ByteView bytes;
  std::string metadata;
  ArrayType array;

  ~State() { connection->release(copy); }
};

struct ObjectWriter::State {
  std::shared_ptr<client::Connection> connection;
  ObjectId id;
  CopyKey copy = 0;
  client::WriteWindow window;
  std::size_t advanced = 0;  // what the user said
  std::size_t told = 0;      // what the daemon knows
  bool open = true;          // neither sealed nor given up
};

struct Follower::State {
  std::shared_ptr<client::Connection> connection;
  std::shared_ptr<client::Call> call;
  std::uint64_t seen_resets = 0;
  bool seen_size = false;  // of what grows now
  std::uint64_t seen_bytes = 0;
  View complete;
  std::optional<Error> failed;

  ~State() { connection->abandon(*call); }
};

namespace client {

// Replies as the user sees them. A reply of another kind than expected, or outside the arena, is kInternal.
Result<hoplite::View> to_view(const std::shared_ptr<Connection>& connection, const Subject& subject,
                              Result<Reply> reply);
Result<ObjectId> to_id(const Subject& subject, Result<Reply> reply);
Error unexpected(const Subject& subject);

// What travels as the metadata of an object of `size` bytes; kInvalidArgument if the options do not fit it or each other.
Result<std::string> encoded_metadata(const Subject& subject, const PutOptions& options, std::uint64_t size);

// What ObjectWriter is made of; puts of large objects use it too.
using Writing = ObjectWriter::State;
Result<std::unique_ptr<Writing>> create(const std::shared_ptr<Connection>& connection, const Subject& subject,
                                        std::uint64_t size, const std::string& encoded_metadata,
                                        const Deadline& deadline);
void advance(Writing& writing, std::size_t bytes);
// From here on nothing can be written. The writing must be open.
Seal close_for_seal(Writing& writing, const Deadline& deadline);

}  // namespace client
}  // namespace hoplite
