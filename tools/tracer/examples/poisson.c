/* Poisson's equation in three dimensions by conjugate gradients: -(u_xx + u_yy + u_zz) = 1 + x + 2 y z in the unit cube,
 * u = 0 on its surface.
 *
 * It shows what a trace of a usual solver looks like. Each iteration exchanges the faces of a block with up to six
 * neighbours (MPI_Irecv, MPI_Isend, MPI_Waitall) and sums two dot products (MPI_Allreduce of 8 bytes). With few points
 * the sums take most of the time: the less even the ranks arrive, the longer all wait.
 *
 *   mpicc -O2 poisson.c -o poisson -lm
 *   mpirun -np 4 ./poisson 48 500 10     # points per side, most iterations, times that all is solved (1 if absent)
 *
 * Prints the same on every run with the same number of ranks; poisson.F90 prints the same numbers up to rounding.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIMENSIONS = 3, SIDES = 2, FACES = DIMENSIONS * SIDES };

/* One rank's block of the grid. Fields have a layer of points of the neighbours (or of the surface) around it. */
struct block {
  MPI_Comm comm;
  int rank;
  int ranks[DIMENSIONS];  /* of the whole grid of ranks */
  int first[DIMENSIONS];  /* global number of the first point, from 1 */
  int points[DIMENSIONS]; /* without the layer around */
  int neighbor[DIMENSIONS][SIDES];
  MPI_Datatype inside[DIMENSIONS][SIDES];  /* outermost points of our own */
  MPI_Datatype outside[DIMENSIONS][SIDES]; /* points of the neighbour's */
  double spacing;
};

static const double SMALL_ENOUGH = 1e-13; /* of the first residual */

static size_t place(const struct block *block, int x, int y, int z) {
  return ((size_t)x * (block->points[1] + 2) + y) * (block->points[2] + 2) + z;
}

static double *new_field(const struct block *block) {
  size_t length = place(block, block->points[0] + 2, 0, 0);
  double *field = calloc(length, sizeof *field);
  if (!field) {
    fprintf(stderr, "poisson: out of memory\n");
    MPI_Abort(block->comm, 1);
  }
  return field;
}

#define FOR_POINTS(block)                         \
  for (int x = 1; x <= (block)->points[0]; x++)   \
    for (int y = 1; y <= (block)->points[1]; y++) \
      for (int z = 1; z <= (block)->points[2]; z++)

/* Layer number `layer` in direction `dimension`, without its edges. */
static MPI_Datatype face(const struct block *block, int dimension, int layer) {
  int whole[DIMENSIONS], part[DIMENSIONS], start[DIMENSIONS], d;
  MPI_Datatype type;
  for (d = 0; d < DIMENSIONS; d++) {
    whole[d] = block->points[d] + 2;
    part[d] = d == dimension ? 1 : block->points[d];
    start[d] = d == dimension ? layer : 1;
  }
  MPI_Type_create_subarray(DIMENSIONS, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

/* False if there are more ranks in a direction than points. */
static int divide(struct block *block, int points_per_side) {
  int periods[DIMENSIONS] = {0}, where[DIMENSIONS], size, d;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (d = 0; d < DIMENSIONS; d++) block->ranks[d] = 0;
  MPI_Dims_create(size, DIMENSIONS, block->ranks);
  for (d = 0; d < DIMENSIONS; d++)
    if (block->ranks[d] > points_per_side) return 0;
  MPI_Cart_create(MPI_COMM_WORLD, DIMENSIONS, block->ranks, periods, 0, &block->comm);
  MPI_Comm_rank(block->comm, &block->rank);
  MPI_Cart_coords(block->comm, block->rank, DIMENSIONS, where);
  block->spacing = 1.0 / (points_per_side + 1);
  for (d = 0; d < DIMENSIONS; d++) {
    int even = points_per_side / block->ranks[d], more = points_per_side % block->ranks[d];
    block->points[d] = even + (where[d] < more);
    block->first[d] = 1 + where[d] * even + (where[d] < more ? where[d] : more);
  }
  for (d = 0; d < DIMENSIONS; d++) {
    MPI_Cart_shift(block->comm, d, 1, &block->neighbor[d][0], &block->neighbor[d][1]);
    block->inside[d][0] = face(block, d, 1);
    block->inside[d][1] = face(block, d, block->points[d]);
    block->outside[d][0] = face(block, d, 0);
    block->outside[d][1] = face(block, d, block->points[d] + 1);
  }
  return 1;
}

static void leave(struct block *block) {
  int d, side;
  for (d = 0; d < DIMENSIONS; d++)
    for (side = 0; side < SIDES; side++) {
      MPI_Type_free(&block->inside[d][side]);
      MPI_Type_free(&block->outside[d][side]);
    }
  MPI_Comm_free(&block->comm);
}

/* Fills the layer around the block from the neighbours. There is none at the surface: nothing is sent, and the layer
 * keeps its zeros. The tag tells in which direction a face travels. */
static void exchange_faces(const struct block *block, double *field) {
  MPI_Request requests[2 * FACES];
  int count = 0, d, side;
  for (d = 0; d < DIMENSIONS; d++)
    for (side = 0; side < SIDES; side++)
      MPI_Irecv(field, 1, block->outside[d][side], block->neighbor[d][side], SIDES * d + 1 - side, block->comm,
                &requests[count++]);
  for (d = 0; d < DIMENSIONS; d++)
    for (side = 0; side < SIDES; side++)
      MPI_Isend(field, 1, block->inside[d][side], block->neighbor[d][side], SIDES * d + side, block->comm,
                &requests[count++]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static double sum(const struct block *block, double mine) {
  double all;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, block->comm);
  return all;
}

static double dot(const struct block *block, const double *left, const double *right) {
  double mine = 0;
  FOR_POINTS(block) mine += left[place(block, x, y, z)] * right[place(block, x, y, z)];
  return sum(block, mine);
}

/* out = A in, with the usual seven points. */
static void apply(const struct block *block, double *in, double *out) {
  const size_t dx = place(block, 1, 0, 0), dy = place(block, 0, 1, 0);
  const double scale = 1 / (block->spacing * block->spacing);
  exchange_faces(block, in);
  FOR_POINTS(block) {
    const size_t p = place(block, x, y, z);
    out[p] = scale * (6 * in[p] - in[p - dx] - in[p + dx] - in[p - dy] - in[p + dy] - in[p - 1] - in[p + 1]);
  }
}

static void fill_right_side(const struct block *block, double *field) {
  FOR_POINTS(block)
  field[place(block, x, y, z)] = 1 + (block->first[0] + x - 1) * block->spacing +
                                 2 * ((block->first[1] + y - 1) * block->spacing) *
                                     ((block->first[2] + z - 1) * block->spacing);
}

/* Prints the result, if this is the last time. */
static void solve(const struct block *block, int iterations, int is_last) {
  double *solution = new_field(block), *residual = new_field(block), *direction = new_field(block);
  double *image = new_field(block), square, first_square, mine = 0, checksum;
  int done = 0;
  fill_right_side(block, residual); /* the first guess is 0 */
  FOR_POINTS(block) direction[place(block, x, y, z)] = residual[place(block, x, y, z)];
  first_square = square = dot(block, residual, residual);
  while (done < iterations && square > SMALL_ENOUGH * SMALL_ENOUGH * first_square) {
    double step, before = square;
    apply(block, direction, image);
    step = square / dot(block, direction, image);
    FOR_POINTS(block) {
      const size_t p = place(block, x, y, z);
      solution[p] += step * direction[p];
      residual[p] -= step * image[p];
    }
    square = dot(block, residual, residual);
    FOR_POINTS(block) {
      const size_t p = place(block, x, y, z);
      direction[p] = residual[p] + square / before * direction[p];
    }
    done++;
  }
  FOR_POINTS(block) mine += solution[place(block, x, y, z)];
  checksum = sum(block, mine) * block->spacing * block->spacing * block->spacing;
  if (block->rank == 0 && is_last) {
    printf("ranks %d x %d x %d\n", block->ranks[0], block->ranks[1], block->ranks[2]);
    printf("iterations %d\n", done);
    printf("residual %.9E\n", sqrt(square / first_square));
    printf("checksum %.9E\n", checksum); /* integral of u */
  }
  free(solution);
  free(residual);
  free(direction);
  free(image);
}

/* 0 if the text is no whole number from 1 to `most`. */
static int number(const char *text, int most) {
  char *end;
  long value = strtol(text, &end, 10);
  return *text && !*end && value >= 1 && value <= most ? (int)value : 0;
}

/* Every rank comes to the same result, so none waits for another. */
static int run(int argc, char **argv) {
  struct block block;
  const int has_arguments = argc == 3 || argc == 4;
  const int points = has_arguments ? number(argv[1], 2000) : 0, iterations = has_arguments ? number(argv[2], 1000000) : 0;
  const int times = argc == 4 ? number(argv[3], 1000000) : 1;
  int rank, i;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!points || !iterations || !times) {
    if (rank == 0) fprintf(stderr, "usage: poisson POINTS ITERATIONS [TIMES] (at most 2000, 1000000, 1000000)\n");
    return 2;
  }
  if (!divide(&block, points)) {
    if (rank == 0) fprintf(stderr, "poisson: %d points per side are too few for this many ranks\n", points);
    return 2;
  }
  for (i = 1; i <= times; i++) solve(&block, iterations, i == times);
  leave(&block);
  return 0;
}

int main(int argc, char **argv) {
  int code;
  MPI_Init(&argc, &argv);
  code = run(argc, argv);
  MPI_Finalize();
  return code;
}
