// How the library makes and opens the public handles, whose constructors are private.
#pragma once

#include <memory>
#include <utility>

#include "client/connection.h"
#include "hoplite/future.h"

namespace hoplite::client {

struct Access {
  // `Convert` makes the result of a reply: (connection, call, Result<Reply>) -> Result<T>.
  template <typename T, auto Convert>
  static Future<T> future(std::shared_ptr<Connection> connection, std::shared_ptr<Call> call) {
    return Future<T>(CallHandle(std::move(connection), std::move(call)), [](CallHandle handle) -> Result<T> {
      const auto taken = std::exchange(handle.call_, nullptr);
      return Convert(handle.connection_, *taken, handle.connection_->wait(*taken));
    });
  }

  static CallHandle call_handle(std::shared_ptr<Connection> connection, std::shared_ptr<Call> call) {
    return {std::move(connection), std::move(call)};
  }

  template <typename Handle, typename State>
  static Handle handle(State state) {
    return Handle(std::move(state));
  }
};

}  // namespace hoplite::client
