// Not a test by itself: the daemon that the tests of this folder talk to (its name keeps it out of the library).
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>

#include "auth/auth.h"
#include "base/check.h"
#include "client/handshake.h"
#include "client/test_daemon.h"
#include "shm/fd_passing.h"

namespace hoplite::client {
namespace {

constexpr std::uint64_t kMaxRequestBytes = 8 * kMiB;
constexpr NodeId kNode{0x1122334455667788};

std::string make_folder() {
  std::string folder = (std::filesystem::temp_directory_path() / "hoplite-client-test-XXXXXX").string();
  CHECK(mkdtemp(folder.data()) != nullptr);
  return folder;
}

UniqueFd listen_at(const std::string& path) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CHECK(path.size() < sizeof address.sun_path, path);
  std::memcpy(address.sun_path, path.data(), path.size());
  CHECK(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, path);
  CHECK(::listen(listener.get(), 8) == 0);
  return listener;
}

std::unique_ptr<Arena> make_arena(std::uint64_t bytes) {
  auto arena = Arena::create({.bytes = bytes, .prefault_ahead_bytes = 0});
  CHECK(arena.ok(), arena.error().message);
  return *std::move(arena);
}

}  // namespace

FakeDaemon::FakeDaemon(Options options)
    : options_(std::move(options)),
      folder_(make_folder()),
      socket_path_(folder_ + "/d.sock"),
      arena_(make_arena(options_.arena_bytes)),
      listener_(listen_at(socket_path_)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { run(); }) {}

FakeDaemon::~FakeDaemon() {
  const std::uint64_t one = 1;
  CHECK(::write(stop_.get(), &one, sizeof one) == sizeof one);
  thread_.join();
  std::filesystem::remove_all(folder_);
}

ConnectOptions FakeDaemon::connect_options() const {
  ConnectOptions options;
  options.socket = socket_path_;
  options.timeout = std::chrono::seconds(20);
  return options;
}

hoplite::Client FakeDaemon::connect(bool busy_poll) {
  ConnectOptions options = connect_options();
  options.busy_poll = busy_poll;
  auto client = hoplite::Client::connect(options);
  CHECK(client.ok(), client.error().message);
  return *std::move(client);
}

void FakeDaemon::intercept(Interceptor interceptor) {
  const std::lock_guard lock(mutex_);
  interceptor_ = std::move(interceptor);
}

void FakeDaemon::reply(std::uint64_t request, const ipc::Reply& message) {
  std::string out;
  ipc::encode_reply(request, message, out);
  send_raw(out);
}

void FakeDaemon::send_raw(const std::string& bytes) {
  const std::lock_guard lock(send_mutex_);
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(client_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;  // the client went away, which tests may want
    sent += static_cast<std::size_t>(n);
  }
}

void FakeDaemon::hang_up() {
  const std::lock_guard lock(send_mutex_);
  ::shutdown(client_.get(), SHUT_RDWR);
}

void FakeDaemon::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void FakeDaemon::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  seen_changed_.notify_all();
}

Extent FakeDaemon::allocate(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const Extent extent{next_offset_, bytes};
  next_offset_ = round_up(next_offset_ + bytes, 4096);
  CHECK(next_offset_ <= arena_->size(), "the fake arena is full");
  return extent;
}

Extent FakeDaemon::store(ObjectId id, const std::string& bytes, const std::string& metadata) {
  const Extent extent = allocate(bytes.size());
  std::memcpy(memory(extent), bytes.data(), bytes.size());
  {
    const std::lock_guard lock(mutex_);
    objects_[id] = {extent, metadata, next_copy_++};
  }
  answer_waiting(id);
  return extent;
}

std::map<CopyKey, int> FakeDaemon::await_releases(std::size_t count) {
  std::unique_lock lock(mutex_);
  seen_changed_.wait_for(lock, std::chrono::seconds(20), [&] {
    std::size_t all = 0;
    for (const auto& [copy, times] : released_) all += static_cast<std::size_t>(times);
    return all >= count;
  });
  return released_;
}

std::size_t FakeDaemon::receives() const {
  const std::lock_guard lock(mutex_);
  return receives_;
}

// --- the daemon's thread

bool FakeDaemon::wait_readable(int fd) {
  pollfd wanted[] = {{.fd = stop_.get(), .events = POLLIN, .revents = 0}, {.fd = fd, .events = POLLIN, .revents = 0}};
  while (::poll(wanted, 2, -1) < 0) continue;
  return wanted[0].revents == 0;
}

void FakeDaemon::run() {
  while (wait_readable(listener_.get())) {
    {
      const std::lock_guard lock(send_mutex_);
      client_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    in_.clear();
    if (!handshake()) continue;
    while (receive_some()) {
      ByteView rest = as_bytes(in_);
      while (true) {
        const auto frame = ipc::next_frame(rest, kMaxRequestBytes);
        CHECK(frame.ok(), frame.error().message);
        if (!frame->complete) break;
        const auto decoded = ipc::decode_request(frame->body);
        CHECK(decoded.ok(), decoded.error().message);
        handle(frame->request, decoded->message, decoded->payload);
      }
      in_.erase(0, in_.size() - rest.size());
    }
  }
}

bool FakeDaemon::receive_some() {
  if (!wait_readable(client_.get())) return false;
  {
    std::unique_lock lock(mutex_);
    if (paused_) {
      seen_changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !paused_; });
    }
    ++receives_;
  }
  char buffer[65536];
  const ssize_t n = ::recv(client_.get(), buffer, sizeof buffer, 0);
  if (n <= 0) return false;
  in_.append(buffer, static_cast<std::size_t>(n));
  return true;
}

bool FakeDaemon::handshake() {
  ipc::Greeting greeting = options_.greeting;
  greeting.proof_wanted = !options_.token.empty();
  if (greeting.proof_wanted) greeting.nonce = "a nonce";
  reply(0, greeting);
  while (true) {
    ByteView rest = as_bytes(in_);
    const auto frame = ipc::next_frame(rest, kMaxRequestBytes);
    CHECK(frame.ok());
    if (!frame->complete) {
      if (!receive_some()) return false;
      continue;
    }
    const auto decoded = ipc::decode_request(frame->body);
    CHECK(decoded.ok());
    const auto& hello = std::get<ipc::Hello>(decoded->message);
    if (greeting.proof_wanted && hello.proof != client_proof(options_.token, greeting.nonce)) {
      reply(0, ipc::Failed{Code::kNotAuthorised, "wrong cluster token"});
      return false;
    }
    in_.erase(0, in_.size() - rest.size());
    break;
  }
  ipc::Welcome welcome;
  welcome.node = kNode;
  welcome.client = 7;
  welcome.arena_bytes = arena_->size();
  welcome.inline_bytes = options_.inline_bytes;
  std::string out;
  ipc::encode_reply(0, welcome, out);
  int lease[2] = {-1, -1};
  CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lease) == 0);
  lease_ = UniqueFd(lease[0]);
  const UniqueFd theirs(lease[1]);
  const int fds[] = {arena_->read_only_fd(), theirs.get()};
  const auto sent = send_with_fds(client_.get(), as_bytes(out), fds);
  CHECK(sent.ok() && *sent == out.size());
  return true;
}

void FakeDaemon::handle(std::uint64_t request, const ipc::Request& message, ByteView payload) {
  Interceptor interceptor;
  {
    const std::lock_guard lock(mutex_);
    interceptor = interceptor_;
  }
  if (!interceptor || !interceptor(request, message, payload))
    std::visit([&](const auto& m) { on(request, m, payload); }, message);
  {
    const std::lock_guard lock(mutex_);
    seen_.emplace_back(request, message);
    if (const auto* release = std::get_if<ipc::Release>(&message))
      for (const CopyKey copy : release->copies) ++released_[copy];
  }
  seen_changed_.notify_all();
}

void FakeDaemon::on(std::uint64_t request, const ipc::Put& put, ByteView payload) {
  store(put.id, std::string(reinterpret_cast<const char*>(payload.data()), payload.size()), put.meta);
  reply(request, ipc::PutDone{put.id});
}

void FakeDaemon::on(std::uint64_t request, const ipc::Create& create, ByteView) {
  const Extent extent = allocate(create.size);
  CopyKey copy = 0;
  {
    const std::lock_guard lock(mutex_);
    copy = next_copy_++;
  }
  writing_[copy] = {create.id, {extent, create.meta, copy}};
  std::string out;
  ipc::encode_reply(request, ipc::Created{create.id, copy, extent.offset, extent.size}, out);
  if (!create.wants_descriptor) return send_raw(out);
  const int fd = arena_->writable_fd();
  const std::lock_guard lock(send_mutex_);
  const auto sent = send_with_fds(client_.get(), as_bytes(out), std::span(&fd, 1));
  CHECK(sent.ok() && *sent == out.size());
}

void FakeDaemon::on(std::uint64_t request, const ipc::Seal& seal, ByteView) {
  const auto [id, stored] = writing_.at(seal.copy);
  {
    const std::lock_guard lock(mutex_);
    objects_[id] = stored;
  }
  reply(request, ipc::PutDone{id});
  answer_waiting(id);
}

void FakeDaemon::on(std::uint64_t request, const ipc::Get& get, ByteView) {
  {
    const std::lock_guard lock(mutex_);
    waiting_[request] = get;
  }
  answer_waiting(get.id);
}

void FakeDaemon::on(std::uint64_t, const ipc::Cancel& cancel, ByteView) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.erase(cancel.target) == 0) return;
  }
  reply(cancel.target, ipc::Failed{Code::kCancelled, "it was cancelled"});
}

void FakeDaemon::on(std::uint64_t request, const ipc::Wait& wait, ByteView) {
  ipc::WaitDone done;
  {
    const std::lock_guard lock(mutex_);
    for (const ObjectId id : wait.ids)
      if (objects_.contains(id)) done.ready.push_back(id);
  }
  reply(request, done);
}

void FakeDaemon::on(std::uint64_t request, const ipc::Remove& remove, ByteView) {
  bool existed = false;
  {
    const std::lock_guard lock(mutex_);
    existed = objects_.erase(remove.id) > 0;
  }
  reply(request, ipc::Removed{existed});
}

void FakeDaemon::on(std::uint64_t request, const ipc::GetStatus&, ByteView) {
  ipc::Status status;
  status.node = {kNode, 3};
  status.capacity = arena_->size();
  status.uptime_ms = 1234;
  reply(request, status);
}

void FakeDaemon::send_view(std::uint64_t request, const Stored& stored) {
  reply(request, ipc::View{stored.copy, 1, stored.extent.offset, stored.extent.size, stored.metadata});
}

void FakeDaemon::answer_waiting(ObjectId id) {
  std::vector<std::pair<std::uint64_t, Stored>> answers;
  {
    const std::lock_guard lock(mutex_);
    if (!objects_.contains(id)) return;
    std::erase_if(waiting_, [&](const auto& entry) {
      if (entry.second.id != id) return false;
      answers.emplace_back(entry.first, objects_.at(id));
      return true;
    });
  }
  for (const auto& [request, stored] : answers) send_view(request, stored);
}

}  // namespace hoplite::client
