/* Request and reply between two processes over a blocking unix socket, one at a
 * time: what any daemon can reach at most with a client that waits for each
 * answer. Prints the seconds of each batch of ROUNDS.
 *
 * A wake-up on another core can cost ten times one on the same core, and the
 * scheduler chooses differently from run to run: PLACEMENT fixes it. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>

#include "peer.h"

/* "any" leaves a process alone; "same" and "apart" bind it to a core. */
static void place(const char* placement, int is_server) {
  if (strcmp(placement, "any") == 0) return;
  if (strcmp(placement, "same") != 0 && strcmp(placement, "apart") != 0)
    usage("raw_unix with a PLACEMENT of any, same or apart");
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(is_server && strcmp(placement, "apart") == 0 ? 1 : 0, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) die("sched_setaffinity");
}

static void serve(int fd, size_t request_size, size_t reply_size) {
  char* request = touched(request_size);
  char* reply = touched(reply_size);
  while (read_full(fd, request, request_size)) write_full(fd, reply, reply_size);
}

static double time_batch(int fd, char* request, size_t request_size, char* reply, size_t reply_size, size_t rounds) {
  double start = now_s();
  for (size_t i = 0; i < rounds; i++) {
    write_full(fd, request, request_size);
    if (!read_full(fd, reply, reply_size)) die("the server closed");
  }
  return now_s() - start;
}

int main(int argc, char** argv) {
  if (argc != 6) usage("raw_unix any|same|apart REQUEST_SIZE REPLY_SIZE ROUNDS BATCHES");
  size_t request_size = parse_count(argv[2]), reply_size = parse_count(argv[3]);
  size_t rounds = parse_count(argv[4]), batches = parse_count(argv[5]);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("socketpair");
  pid_t server = fork();
  if (server < 0) die("fork");
  place(argv[1], server == 0);
  if (server == 0) {
    close(ends[0]);
    serve(ends[1], request_size, reply_size);
    return 0;
  }
  close(ends[1]);
  char* request = touched(request_size);
  char* reply = touched(reply_size);
  double* seconds = touched(batches * sizeof *seconds);
  time_batch(ends[0], request, request_size, reply, reply_size, rounds / 10 + 1); /* warm up */
  for (size_t i = 0; i < batches; i++)
    seconds[i] = time_batch(ends[0], request, request_size, reply, reply_size, rounds);
  close(ends[0]);
  waitpid(server, NULL, 0);
  printf("{\"rounds\": %zu, ", rounds);
  print_times("seconds", seconds, batches);
  printf("}\n");
  return 0;
}
