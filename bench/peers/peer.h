/* What the plain C peers share: clock, sockets that block, one line of JSON.
 *
 * These programs say what the machine can do with the fewest means, so that
 * Hoplite has a fair reference. An error ends the program with a message. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECT_TRIES = 500, CONNECT_PAUSE_US = 10 * 1000 };

static inline double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void die(const char* what) {
  perror(what);
  exit(1);
}

static inline void usage(const char* text) {
  fprintf(stderr, "usage: %s\n", text);
  exit(2);
}

/* A whole non-negative number, or the program ends. */
static inline size_t parse_count(const char* text) {
  char* end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || *text == '-') {
    fprintf(stderr, "%s is not a number\n", text);
    exit(2);
  }
  return (size_t)value;
}

/* Memory whose pages are all present. */
static inline void* touched(size_t size) {
  void* memory = malloc(size + 1);
  if (memory == NULL) die("malloc");
  memset(memory, 1, size + 1);
  return memory;
}

static inline void write_full(int fd, const void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = send(fd, (const char*)data + done, size - done, MSG_NOSIGNAL);
    if (n < 0) die("send");
    done += (size_t)n;
  }
}

/* 1 when all is read, 0 when the peer closed before the first byte. */
static inline int read_full(int fd, void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = recv(fd, (char*)data + done, size - done, 0);
    if (n < 0) die("recv");
    if (n == 0 && done == 0) return 0;
    if (n == 0) {
      fprintf(stderr, "the peer closed after %zu of %zu bytes\n", done, size);
      exit(1);
    }
    done += (size_t)n;
  }
  return 1;
}

/* An address of either family, ready for bind and connect. */
struct address {
  union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_un un;
  } name;
  socklen_t size;
};

static inline struct address tcp_address(const char* ip, size_t port) {
  struct address a = {.size = sizeof a.name.in};
  a.name.in.sin_family = AF_INET;
  a.name.in.sin_port = htons((uint16_t)port);
  if (inet_pton(AF_INET, ip, &a.name.in.sin_addr) != 1) {
    fprintf(stderr, "%s is not an IPv4 address\n", ip);
    exit(2);
  }
  return a;
}

/* An abstract name: private to the network namespace, leaves no file behind. */
static inline struct address unix_address(const char* name) {
  struct address a = {0};
  a.name.un.sun_family = AF_UNIX;
  strncpy(a.name.un.sun_path + 1, name, sizeof a.name.un.sun_path - 2);
  a.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
  return a;
}

static inline void without_delay(int fd, const struct address* a) {
  int on = 1;
  if (a->name.any.sa_family == AF_INET && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
    die("TCP_NODELAY");
}

/* Listens, accepts one connection and listens no more. */
static inline int accept_one(struct address a) {
  int on = 1;
  int listener = socket(a.name.any.sa_family, SOCK_STREAM, 0);
  if (listener < 0) die("socket");
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, &a.name.any, a.size) != 0) die("bind");
  if (listen(listener, 1) != 0) die("listen");
  int fd = accept(listener, NULL, NULL);
  if (fd < 0) die("accept");
  close(listener);
  without_delay(fd, &a);
  return fd;
}

/* Connects; waits a few seconds for the other side to be started. */
static inline int connect_patiently(struct address a) {
  for (int i = 0; i < CONNECT_TRIES; i++) {
    int fd = socket(a.name.any.sa_family, SOCK_STREAM, 0);
    if (fd < 0) die("socket");
    if (connect(fd, &a.name.any, a.size) == 0) {
      without_delay(fd, &a);
      return fd;
    }
    close(fd);
    usleep(CONNECT_PAUSE_US);
  }
  die("connect");
  return -1;
}

/* Idle time before a repetition. The lab's shapers let a burst pass unslowed
 * after a pause; with a rest longer than they need to recover, each repetition
 * of each peer meets the same link. */
static inline void rest(size_t ms) {
  if (ms > 0) usleep((useconds_t)(ms * 1000));
}

/* "name": [seconds, ...], the part of a JSON object. */
static inline void print_times(const char* name, const double* seconds, size_t count) {
  printf("\"%s\": [", name);
  for (size_t i = 0; i < count; i++) printf("%s%.9f", i == 0 ? "" : ", ", seconds[i]);
  printf("]");
}

/* Sends `size` bytes and waits for as many, warmup + rounds times, after a pause
 * each; prints the times of the rounds. */
static inline void ping(int fd, size_t size, size_t rounds, size_t warmup, size_t pause_ms) {
  char* message = touched(size);
  double* seconds = touched(rounds * sizeof *seconds);
  for (size_t i = 0; i < warmup + rounds; i++) {
    rest(pause_ms);
    double start = now_s();
    write_full(fd, message, size);
    if (!read_full(fd, message, size)) die("the peer closed");
    if (i >= warmup) seconds[i - warmup] = now_s() - start;
  }
  printf("{\"size\": %zu, ", size);
  print_times("seconds", seconds, rounds);
  printf("}\n");
}

/* Returns each message of `size` bytes until the peer closes. */
static inline void echo(int fd, size_t size) {
  char* message = touched(size);
  while (read_full(fd, message, size)) write_full(fd, message, size);
}
