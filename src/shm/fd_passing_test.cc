#include "shm/fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "shm/test_helpers.h"

namespace hoplite {
namespace {

class FdPassingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> pair{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()), 0);
    left_.reset(pair[0]);
    right_.reset(pair[1]);
  }

  // Around the limit that send_with_fds keeps.
  void send_raw(const std::string& text, const std::vector<int>& fds) {
    iovec data{const_cast<char*>(text.data()), text.size()};
    std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    ASSERT_EQ(sendmsg(left_.get(), &message, 0), static_cast<ssize_t>(text.size()));
  }

  UniqueFd left_;
  UniqueFd right_;
  std::array<std::byte, 64> buffer_{};
};

TEST_F(FdPassingTest, BytesAndDescriptorsArriveTogether) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  const UniqueFd pipe_out(pipe_ends[0]);
  UniqueFd pipe_in(pipe_ends[1]);
  const int passed = pipe_in.get();
  ASSERT_EQ(send_with_fds(left_.get(), as_bytes("hello"), {&passed, 1}).value(), 5u);
  pipe_in.reset();

  const std::optional<BytesAndFds> received = recv_with_fds(right_.get(), buffer_).value();
  ASSERT_TRUE(received);
  EXPECT_EQ(std::memcmp(buffer_.data(), "hello", received->bytes), 0);
  ASSERT_EQ(received->fds.size(), 1u);
  EXPECT_NE(fcntl(received->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(write(received->fds[0].get(), "x", 1), 1);
  char out = 0;
  ASSERT_EQ(read(pipe_out.get(), &out, 1), 1);
  EXPECT_EQ(out, 'x');
}

TEST_F(FdPassingTest, PlainBytesNeedNoDescriptors) {
  ASSERT_EQ(send_with_fds(left_.get(), as_bytes("abc"), {}).value(), 3u);
  const std::optional<BytesAndFds> received = recv_with_fds(right_.get(), buffer_).value();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->bytes, 3u);
  EXPECT_TRUE(received->fds.empty());
}

TEST_F(FdPassingTest, NothingThereYetIsNotAnError) {
  EXPECT_EQ(recv_with_fds(right_.get(), buffer_).value(), std::nullopt);
}

TEST_F(FdPassingTest, FullSocketSendsNothing) {
  const std::string much(1 << 16, 'x');
  while (send_with_fds(left_.get(), as_bytes(much), {}).value()) {}
  const int passed = 0;
  EXPECT_EQ(send_with_fds(left_.get(), as_bytes("x"), {&passed, 1}).value(), std::nullopt);
}

TEST_F(FdPassingTest, ClosedPeer) {
  left_.reset();
  EXPECT_EQ(recv_with_fds(right_.get(), buffer_).value()->bytes, 0u);
  EXPECT_EQ(send_with_fds(right_.get(), as_bytes("x"), {}).code(), Code::kUnavailable);  // and no SIGPIPE
}

TEST_F(FdPassingTest, OfTooManyDescriptorsNoneIsLeftOpen) {
  const std::size_t before = open_descriptors();
  send_raw("x", std::vector<int>(kMaxPassedFds + 3, left_.get()));
  EXPECT_EQ(recv_with_fds(right_.get(), buffer_).value()->fds.size(), kMaxPassedFds);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(FdPassingTest, DescriptorsNobodyTookAreClosed) {
  const std::size_t before = open_descriptors();
  const std::vector<int> passed(kMaxPassedFds, left_.get());
  ASSERT_EQ(send_with_fds(left_.get(), as_bytes("x"), passed).value(), 1u);
  EXPECT_EQ(recv_with_fds(right_.get(), buffer_).value()->fds.size(), kMaxPassedFds);
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace hoplite
