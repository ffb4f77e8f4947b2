// A node made by hand: it knows the token, keeps to the handshake and then says anything.
//
// It listens, so that daemons can reach it. What they say is read while one of the waiting functions runs.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/unique_fd.h"
#include "cluster.h"
#include "protocol/bulk.h"
#include "protocol/messages.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/socket.h"

namespace hoplite::testing {

// One connection between the peer and a daemon, dialled by either side.
class RawLine {
 public:
  RawLine(UniqueFd fd, tcp::Handshake handshake, std::optional<tcp::Role> dialled_as)
      : fd_(std::move(fd)), handshake_(std::move(handshake)), dialled_as_(dialled_as) {}

  // Reads what is there.
  void step() {
    if (closed_ || !fd_) return;
    if (!introduced_) return introduce();
    char buffer[65536];
    for (ssize_t got = mute ? 0 : 1; got > 0;) {
      got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) input.append(buffer, static_cast<std::size_t>(got));
      closed_ = got == 0 || (got < 0 && !tcp::would_block(errno));
    }
  }
  // As many of the bytes as the socket takes now.
  std::size_t say_some(std::string_view bytes) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  bool say(std::string_view bytes) {
    return eventually([&] {
             bytes.remove_prefix(say_some(bytes));
             step();
             return bytes.empty() || closed_;
           }) &&
           bytes.empty();
  }
  bool say(const FrameHeader& frame, std::string_view body = {}) {
    const auto header = frame.encode();
    return say(std::string(reinterpret_cast<const char*>(header.data()), header.size()).append(body));
  }
  bool is_cut_off() {
    return eventually([&] { return step(), closed_; });
  }
  // The same without reading.
  bool hung_up() const {
    pollfd socket{fd_.get(), 0, 0};
    return ::poll(&socket, 1, 0) == 1 && (socket.revents & (POLLHUP | POLLERR)) != 0;
  }
  bool introduced() const { return introduced_; }
  bool closed() const { return closed_; }
  tcp::Role role() const { return dialled_as_ ? *dialled_as_ : handshake_.peer().role; }
  NodeRef daemon() const { return handshake_.peer().node; }

  std::string input;  // what nobody has looked at
  bool mute = false;  // it never reads

 private:
  void introduce() {
    pollfd writable{fd_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, 0) != 1) return;
    const auto state = handshake_.advance(fd_.get());
    closed_ = state == tcp::Handshake::State::kFailed;
    introduced_ = state == tcp::Handshake::State::kDone;
  }

  UniqueFd fd_;
  tcp::Handshake handshake_;
  std::optional<tcp::Role> dialled_as_;
  bool introduced_ = false;
  bool closed_ = false;
};

class RawPeer {
 public:
  RawPeer(NodeRef self, const std::string& token)
      : listener_(tcp::listen_on({"127.0.0.1", 0}, 16).value()),
        identity_{self, tcp::local_address(listener_.get()), token} {}

  NodeRef self() const { return identity_.node; }
  MemberNews news(Life life = Life::kAlive) const { return {self(), identity_.address, life}; }

  RawLine& dial(const std::string& address, tcp::Role role) {
    auto connecting = tcp::start_connect(*Address::parse(address, 0));
    RawLine& line = lines_.emplace_back(std::move(connecting.fd), tcp::Handshake::dialler(identity_, role, {}), role);
    eventually([&] { return line.step(), line.introduced() || line.closed(); });
    return line;
  }
  // Becomes a member by way of that daemon, to which it tells everything from now on. What the daemon knows, or nothing.
  std::optional<Sync> join(const std::string& address) {
    control_ = &dial(address, tcp::Role::kControl);
    tell(Sync{true, {news()}});
    return hears<Sync>();
  }
  RawLine& control() { return *control_; }

  static std::string encoded(const Message& message, std::string_view payload = {}) {
    std::string out(sizeof(std::uint32_t), '\0');
    encode_message(message, out);
    out.append(payload);
    const auto length = static_cast<std::uint32_t>(out.size() - sizeof(std::uint32_t));
    std::memcpy(out.data(), &length, sizeof length);
    return out;
  }
  bool tell(const Message& message, std::string_view payload = {}) { return control_->say(encoded(message, payload)); }

  // The next message of this kind, from whatever daemon; waits for it.
  template <typename T>
  std::optional<T> hears(const std::function<bool(const T&)>& wanted = [](const T&) { return true; }) {
    std::optional<T> found;
    eventually([&] { return found = heard<T>(wanted), found.has_value(); });
    return found;
  }
  // The same among those that have come.
  template <typename T>
  std::optional<T> heard(const std::function<bool(const T&)>& wanted) {
    step();
    for (const Message& message : heard_)
      if (const T* found = std::get_if<T>(&message); found != nullptr && wanted(*found)) return *found;
    return std::nullopt;
  }
  // A bulk connection that a daemon has dialled and said something on.
  RawLine* pulled_from() {
    const auto asked = [](RawLine& line) { return line.role() == tcp::Role::kBulk && !line.input.empty(); };
    RawLine* found = nullptr;
    eventually([&] {
      step();
      for (RawLine& line : lines_)
        if (line.introduced() && asked(line)) found = &line;
      return found != nullptr;
    });
    return found;
  }

  // One step of everything: connections come, handshakes go on, messages are taken, pings are answered.
  void step() {
    if (UniqueFd fd = tcp::accept_on(listener_.get()))
      lines_.emplace_back(std::move(fd), tcp::Handshake::acceptor(identity_), std::nullopt);
    for (RawLine& line : lines_) {
      line.step();
      if (line.introduced() && line.role() == tcp::Role::kControl) take_messages(line);
    }
  }

 private:
  static constexpr std::size_t kMostHeard = 10'000;

  void take_messages(RawLine& line) {
    std::string& in = line.input;
    std::uint32_t length = 0;
    while (in.size() >= sizeof length) {
      std::memcpy(&length, in.data(), sizeof length);
      if (in.size() < sizeof length + length) return;
      const auto decoded = decode_message(as_bytes(in).subspan(sizeof length, length));
      if (decoded) take(decoded->message);
      in.erase(0, sizeof length + length);
    }
  }
  void take(const Message& message) {
    if (const auto* ping = std::get_if<Ping>(&message); ping != nullptr && control_ != nullptr && !control_->closed())
      tell(Ack{ping->seq, {}});
    heard_.push_back(message);
    if (heard_.size() > kMostHeard) heard_.pop_front();
  }

  UniqueFd listener_;
  tcp::Identity identity_;
  std::list<RawLine> lines_;
  RawLine* control_ = nullptr;
  std::deque<Message> heard_;
};

}  // namespace hoplite::testing
