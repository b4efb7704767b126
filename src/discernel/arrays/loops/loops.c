/* Loops over tiles of kernel matrices, which Python calls by ctypes and without its lock.

   What is computed of pairwise matrices is a program: a list of steps, each an operation on one
   number, `value`. A step is done for a row of a tile at a time, by one vectorized loop over
   numbers that stay in the cache. Products of matrices are those of the BLAS of SciPy, whose
   functions are passed in. `__init__.py` says what the parameters are. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* exp(-a p), exp(-a sqrt(p)), (a p + b)^n, the square of value n times, keep value, value times the
   kept one, add a value to the result, add a to it. */
enum { EXP, ROOT_EXP, POWER, SQUARE, KEEP, TIMES, ADD, ADD_CONSTANT };
/* What a pairwise matrix is of two arrays: their product; distances by such a product, at least 0
   and 0 on the diagonal; squared differences of one column; sums of absolute differences; distances
   by a product of rows that are not the same, with no diagonal; a stored matrix. */
enum { PRODUCT, DISTANCES, DIFFERENCES, ABSOLUTE, BETWEEN, STORED };
/* Rows and columns that are computed at a time, in the cache of a core, and mirrored at a time. */
enum { ROWS = 256, COLUMNS = 256, MIRRORED = 16 };
/* Rows, and numbers of each, of which sums of absolute differences are in registers, and in the
   nearest cache, at a time. */
enum { LANES = 32, NUMBERS = 64 };
/* Pairwise matrices that steps may be of; the last is what the steps before have made. */
enum { MOST_BASES = 16, PREVIOUS = 15 };

typedef struct { int64_t operation, base, n; } Step;
typedef struct { int64_t top, bottom, left, right; } Tile;
/* What a pairwise matrix is, and the addresses of the two arrays, of so many columns. With the
   address of a matrix, whose rows are `stride` numbers apart: that matrix, after some columns of its
   rows changed. `left` then has their old and new values, and `right` is transposed. */
typedef struct { int64_t kind, width, left, right, matrix, stride; } Base;
typedef struct { int64_t n_bases, n_steps; } Group;

/* Which source this was compiled from. */
const char *source(void) { return SOURCE; }

#if defined(__x86_64__) && defined(__GNUC__)
#define LEVELS 3
#else
#define LEVELS 1
#endif

/* The most that the compiled instructions and this processor have in common. */
static int level(void) {
#if LEVELS == 3
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
  return 0;
}

#define EACH_BLOCK(tile)                                           \
  for (int64_t top = (tile).top; top < (tile).bottom; top += ROWS) \
    for (int64_t left = (tile).left; left < (tile).right; left += COLUMNS)

static int size_of(int64_t first, int64_t end, int64_t most) {
  return (int)(end - first < most ? end - first : most);
}

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define REAL double
#define BITS int64_t
#define NAME(name) JOIN(name, double)
#define LEAST_EXPONENT -690.0
#define TINY 1.473681879304291e-150 /* exp(-690 / 2) */
#define MANTISSA 52
#define SHIFT (6755399441055744.0 + 1023.0)
#define LOG2_HIGH 6.93147180369123816490e-01
#define LOG2_LOW 1.90821492927058770002e-10
#define POLYNOMIAL(r) \
  ((((((((((2.5100385495510319e-8 * r + 2.7620088445409748e-7) * r + 2.7557268459997065e-6) * r \
      + 2.4801521295954375e-5) * r + 1.9841269863053617e-4) * r + 1.3888888917213717e-3) * r \
      + 8.3333333333300618e-3) * r + 4.1666666666624128e-2) * r + 1.6666666666666667e-1) * r \
      + 0.5000000000000001))
#include "passes.h"
#undef REAL
#undef BITS
#undef NAME
#undef LEAST_EXPONENT
#undef TINY
#undef MANTISSA
#undef SHIFT
#undef LOG2_HIGH
#undef LOG2_LOW
#undef POLYNOMIAL

#define REAL float
#define BITS int32_t
#define NAME(name) JOIN(name, float)
#define LEAST_EXPONENT -80.0f
#define TINY 4.248354255291589e-18f /* exp(-80 / 2) */
#define MANTISSA 23
#define SHIFT (12582912.0f + 127.0f)
#define LOG2_HIGH 0.693359375f
#define LOG2_LOW -2.12194440e-4f
#define POLYNOMIAL(r) \
  ((((((0.00019890991f * r + 0.001393365f) * r + 0.0083333109f) * r + 0.041666465f) * r \
      + 0.16666667f) * r + 0.5f))
#include "passes.h"

/* Matrices are written in double precision, or rounded to single precision. */

#define STORE(type)                                                                               \
  static void JOIN(store, type)(const double *values, int64_t h, int64_t w, type *out, int64_t n, \
                                int64_t top, int64_t left, int mirrored) {                        \
    for (int64_t i = 0; i < h; i++)                                                               \
      for (int64_t j = 0; j < w; j++) out[(top + i) * n + left + j] = (type)values[i * w + j];    \
    for (int64_t first = 0; mirrored && first < h; first += MIRRORED)                             \
      for (int64_t j = 0; j < w; j++)                                                             \
        for (int64_t i = first; i < h && i < first + MIRRORED; i++)                               \
          out[(left + j) * n + top + i] = (type)values[i * w + j];                                \
  }
STORE(double)
STORE(float)

/* Write (S_ij - m_i - a_j) r_i r_j of the tiles of a symmetric sum, and their mirror images, to a
   matrix of n rows. Returns 1 if there is no memory. */
int write_sums(const Sum_double *sum, int64_t n_tiles, const Tile *tiles, const double *means,
               const double *across, const double *roots, int64_t n, void *out, int is_single) {
  double *memory = malloc(sizeof(double) * (sum->most_bases + 1) * ROWS * COLUMNS);
  if (memory == NULL) return 1;
  RunSteps_double run = fastest_double();
  for (int64_t t = 0; t < n_tiles; t++)
    EACH_BLOCK(tiles[t]) {
      const int mirrored = tiles[t].top != tiles[t].left;
      Block_double block = start_double(sum, tiles + t, top, left, memory);
      const int h = block.height, w = block.width;
      double *total = block.total;
      for (int64_t g = 0; g < sum->n_groups; g++)
        run_group_double(sum, run, sum->groups + g, &block, g > 0);
      for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++)
          total[i * w + j] = (total[i * w + j] - means[top + i] - across[left + j]) *
                             roots[top + i] * roots[left + j];
      if (is_single)
        store_float(total, h, w, out, n, top, left, mirrored);
      else
        store_double(total, h, w, out, n, top, left, mirrored);
    }
  free(memory);
  return 0;
}

/* Write the sum between some rows and others to a matrix, whose rows are `stride` numbers apart, and
   add its entries to `entries`, while they are in the cache. Returns 1 if there is no memory. */
int write_between(const Sum_double *sum, const Tile *tile, double *out, int64_t stride,
                  double *entries) {
  double *memory = malloc(sizeof(double) * (sum->most_bases + 1) * ROWS * COLUMNS);
  if (memory == NULL) return 1;
  RunSteps_double run = fastest_double();
  EACH_BLOCK(*tile) {
    Block_double block = start_double(sum, tile, top, left, memory);
    for (int64_t g = 0; g < sum->n_groups; g++)
      run_group_double(sum, run, sum->groups + g, &block, g > 0);
    double sums[COLUMNS] = {0};
    for (int64_t i = 0; i < block.height; i++) {
      const double *row = block.total + i * block.width;
      for (int64_t j = 0; j < block.width; j++) sums[j] += row[j];
      memcpy(out + (top - tile->top + i) * stride + left - tile->left, row,
             sizeof(double) * block.width);
    }
    for (int64_t j = 0; j < block.width; j++) *entries += sums[j];
  }
  free(memory);
  return 0;
}

/* Add S'GS of the tiles of the symmetric matrix of every group to its place in `out`, of q rows and
   columns. Tiles on the diagonal count half, as what is added is to be added to its transpose.
   Returns 1 if there is no memory. */
int add_compressed(const Sum_double *sum, int64_t n_tiles, const Tile *tiles, int64_t n_columns,
                   const double *basis, double *out, const int64_t *places) {
  const int64_t entries = (sum->most_bases + 1) * ROWS * COLUMNS;
  const int q = (int)n_columns;
  const double one = 1, zero = 0;
  double *memory = malloc(sizeof(double) * (entries + ROWS * n_columns));
  if (memory == NULL) return 1;
  double *found = memory + entries;
  RunSteps_double run = fastest_double();
  for (int64_t t = 0; t < n_tiles; t++)
    EACH_BLOCK(tiles[t]) {
      const double counts = tiles[t].top != tiles[t].left ? 1.0 : 0.5;
      Block_double block = start_double(sum, tiles + t, top, left, memory);
      const int h = block.height, w = block.width;
      for (int64_t g = 0; g < sum->n_groups; g++) {
        run_group_double(sum, run, sum->groups + g, &block, 0);
        sum->gemm("N", "N", &q, &h, &w, &one, basis + left * q, &q, block.total, &w, &zero, found,
                  &q);
        sum->gemm("N", "T", &q, &q, &h, &counts, found, &q, basis + top * q, &q, &one,
                  out + places[g] * n_columns * n_columns, &q);
      }
    }
  free(memory);
  return 0;
}
