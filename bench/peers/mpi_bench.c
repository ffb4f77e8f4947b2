/* One MPI operation, timed: after a barrier, the longest of all ranks. Rank 0
 * prints the seconds of each repetition as JSON. REST_MS: see rest() in peer.h.
 *
 *   bcast, reduce (to rank 0, float sum), allreduce: all ranks
 *   gather: SIZE of each rank to rank 0
 *   oneway: rank 0 to rank 1;  pingpong: there and back; others wait */
#include <limits.h>
#include <mpi.h>

#include "peer.h"

struct buffers {
  float* in;
  float* out;
  int count; /* of floats */
};

static void bcast(struct buffers b, int rank) {
  (void)rank;
  MPI_Bcast(b.in, b.count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void reduce(struct buffers b, int rank) {
  (void)rank;
  MPI_Reduce(b.in, b.out, b.count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(struct buffers b, int rank) {
  (void)rank;
  MPI_Allreduce(b.in, b.out, b.count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(struct buffers b, int rank) {
  (void)rank;
  MPI_Gather(b.in, b.count, MPI_FLOAT, b.out, b.count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void oneway(struct buffers b, int rank) {
  if (rank == 0) MPI_Send(b.in, b.count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(b.in, b.count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pingpong(struct buffers b, int rank) {
  oneway(b, rank);
  if (rank == 1) MPI_Send(b.in, b.count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(b.in, b.count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const struct operation {
  const char* name;
  void (*run)(struct buffers, int rank);
} OPERATIONS[] = {
    {"bcast", bcast},   {"reduce", reduce}, {"allreduce", allreduce},
    {"gather", gather}, {"oneway", oneway}, {"pingpong", pingpong},
};

static const struct operation* find_operation(const char* name) {
  for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
    if (strcmp(OPERATIONS[i].name, name) == 0) return &OPERATIONS[i];
  fprintf(stderr, "unknown operation %s\n", name);
  exit(2);
}

static double time_once(const struct operation* operation, struct buffers b, int rank, size_t rest_ms) {
  rest(rest_ms);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_s();
  operation->run(b, rank);
  double own = now_s() - start, longest = 0;
  MPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return longest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 6) usage("mpi_bench bcast|reduce|allreduce|gather|oneway|pingpong SIZE REPS WARMUP REST_MS");
  const struct operation* operation = find_operation(argv[1]);
  size_t size = parse_count(argv[2]), reps = parse_count(argv[3]);
  size_t warmup = parse_count(argv[4]), rest_ms = parse_count(argv[5]);
  if (size % sizeof(float) != 0 || size / sizeof(float) > INT_MAX)
    usage("mpi_bench with a SIZE that is a multiple of 4 below 8 GiB");
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) usage("mpi_bench on at least 2 ranks");

  size_t results = operation->run == gather ? (size_t)ranks : 1;
  struct buffers b = {touched(size), touched(results * size), (int)(size / sizeof(float))};
  double* seconds = touched(reps * sizeof *seconds);
  for (size_t i = 0; i < warmup; i++) time_once(operation, b, rank, rest_ms);
  for (size_t i = 0; i < reps; i++) seconds[i] = time_once(operation, b, rank, rest_ms);
  if (rank == 0) {
    printf("{\"size\": %zu, \"ranks\": %d, ", size, ranks);
    print_times("seconds", seconds, reps);
    printf("}\n");
  }
  MPI_Finalize();
  return 0;
}
