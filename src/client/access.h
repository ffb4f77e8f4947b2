// How the library makes and opens the public handles, whose constructors are private.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "client/connection.h"
#include "hoplite/future.h"

namespace hoplite::client {

struct Access {
  // `Convert` makes the result of a reply: (connection, call, Result<Reply>) -> Result<T>.
  template <auto Convert>
  static auto future(std::shared_ptr<Connection> connection, std::shared_ptr<Call> call) {
    using Converted = std::invoke_result_t<decltype(Convert), std::shared_ptr<Connection>&, Call&, Result<ipc::Reply>>;
    using T = typename Converted::Value;
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
