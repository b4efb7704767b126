/* Passes over tiles, for numbers of type REAL. */

#define TARGET
#define LEVEL(name) JOIN(NAME(name), plain)
#include "rows.h"
#undef TARGET
#undef LEVEL
#if LEVELS == 3
#define TARGET __attribute__((target("avx2,fma")))
#define LEVEL(name) JOIN(NAME(name), avx2)
#include "rows.h"
#undef TARGET
#undef LEVEL
#define TARGET __attribute__((target("avx512f,avx512dq,avx2,fma,prefer-vector-width=512")))
#define LEVEL(name) JOIN(NAME(name), avx512)
#include "rows.h"
#undef TARGET
#undef LEVEL
#endif

typedef void (*NAME(Gemm))(const char *, const char *, const int *, const int *, const int *,
                           const REAL *, const REAL *, const int *, const REAL *, const int *,
                           const REAL *, REAL *, const int *);
typedef void (*NAME(RunSteps))(int64_t, const Step *, const REAL *, const REAL *const *, int64_t,
                               int64_t, int, REAL *);

typedef void (*NAME(City))(const REAL *, const REAL *, int64_t, int64_t, int64_t, REAL *, int64_t);

/* Write the sums of absolute differences of all pairs of rows of k numbers. */
void NAME(city)(const REAL *x, const REAL *z, int64_t k, int64_t height, int64_t width, REAL *out,
                int64_t stride) {
#if LEVELS == 3
  static const NAME(City) known[] = {JOIN(NAME(city), plain), JOIN(NAME(city), avx2),
                                     JOIN(NAME(city), avx512)};
  known[level()](x, z, k, height, width, out, stride);
#else
  JOIN(NAME(city), plain)(x, z, k, height, width, out, stride);
#endif
}

static NAME(RunSteps) NAME(fastest)(void) {
#if LEVELS == 3
  static const NAME(RunSteps) known[] = {JOIN(NAME(run_steps), plain), JOIN(NAME(run_steps), avx2),
                                         JOIN(NAME(run_steps), avx512)};
  return known[level()];
#else
  return JOIN(NAME(run_steps), plain);
#endif
}

/* What a sum of kernels is made of, and how: groups of pairwise matrices and steps, one after
   another. */
typedef struct {
  NAME(Gemm) gemm;
  int64_t n_groups, most_bases;
  const Group *groups;
  const Base *bases;
  const Step *steps;
  const REAL *numbers;
} NAME(Sum);

/* Write, or add, what steps make of pairwise matrices that are there. */
void NAME(evaluate)(const int64_t *places, const int64_t *strides, int64_t n_bases, int64_t n_steps,
                    const Step *steps, const REAL *numbers, int64_t height,
                    int64_t width, int add, REAL *out) {
  const REAL *bases[MOST_BASES] = {0};
  NAME(RunSteps) run = NAME(fastest)();
  for (int64_t i = 0; i < height; i++)
    for (int64_t first = 0; first < width; first += COLUMNS) {
      for (int64_t b = 0; b < n_bases; b++)
        bases[b] = (const REAL *)(intptr_t)places[b] + i * strides[b] + first;
      run(n_steps, steps, numbers, bases, 0, size_of(first, width, COLUMNS), add,
          out + i * width + first);
    }
}

/* Write what a stored matrix becomes when some columns of its rows change. */
static void NAME(write_changed)(const Base *base, int64_t top, int64_t left, int height, int width,
                                REAL *out) {
  const int64_t k = base->width;
  for (int64_t i = 0; i < height; i++, out += width) {
    const REAL *old = (const REAL *)(intptr_t)base->left + (top + i) * 2 * k, *now = old + k;
    const REAL *before = (const REAL *)(intptr_t)base->matrix + (top + i) * base->stride + left;
    for (int64_t j = 0; j < width; j++) out[j] = 0;
    for (int64_t l = 0; l < k; l++) {
      const REAL *z = (const REAL *)(intptr_t)base->right + l * base->stride + left;
      const REAL a = now[l], b = old[l];
      if (base->kind == PRODUCT)
        for (int64_t j = 0; j < width; j++) out[j] += a * z[j] - b * z[j];
      else if (base->kind == DIFFERENCES)
        for (int64_t j = 0; j < width; j++)
          out[j] += (a - z[j]) * (a - z[j]) - (b - z[j]) * (b - z[j]);
      else
        for (int64_t j = 0; j < width; j++) {
          const REAL p = a - z[j], q = b - z[j];
          out[j] += (p < 0 ? -p : p) - (q < 0 ? -q : q);
        }
    }
    for (int64_t j = 0; j < width; j++) out[j] += before[j];
    if (base->kind == DIFFERENCES || base->kind == ABSOLUTE)
      for (int64_t j = 0; j < width; j++) out[j] = out[j] < 0 ? 0 : out[j];
  }
}

static void NAME(write_base)(const NAME(Sum) *sum, const Base *base, int64_t top, int64_t left,
                             int height, int width, REAL *out) {
  const int k = (int)base->width;
  const REAL one = 1, zero = 0;
  if (base->matrix) {
    NAME(write_changed)(base, top, left, height, width, out);
    return;
  }
  const REAL *x = (const REAL *)(intptr_t)base->left + top * k;
  const REAL *z = (const REAL *)(intptr_t)base->right + left * k;
  if (base->kind == DIFFERENCES) {
    for (int64_t i = 0; i < height; i++)
      for (int64_t j = 0; j < width; j++) out[i * width + j] = (x[i] - z[j]) * (x[i] - z[j]);
    return;
  }
  if (base->kind == ABSOLUTE) {
    NAME(city)(x, z, k, height, width, out, width);
    return;
  }
  sum->gemm("T", "N", &width, &height, &k, &one, z, &k, x, &k, &zero, out, &width);
  if (base->kind == PRODUCT) return;
  for (int64_t j = 0; j < (int64_t)height * width; j++) out[j] = out[j] < 0 ? 0 : out[j];
  if (base->kind == BETWEEN) return;
  for (int64_t i = 0; i < height; i++) /* not what rounding leaves there */
    if (left <= top + i && top + i < left + width) out[i * width + (top + i - left)] = 0;
}

/* The pairwise matrices of a block of rows and columns, memory for them, and the next steps. */
typedef struct {
  int64_t top, left;
  int height, width;
  REAL *memory, *total;
  const REAL *places[MOST_BASES];
  const Base *base;
  const Step *steps;
  const REAL *numbers;
} NAME(Block);

static NAME(Block) NAME(start)(const NAME(Sum) *sum, const Tile *tile, int64_t top, int64_t left,
                               REAL *memory) {
  NAME(Block) block = {top, left, size_of(top, tile->bottom, ROWS),
                       size_of(left, tile->right, COLUMNS), memory,
                       memory + sum->most_bases * ROWS * COLUMNS, {0}, sum->bases, sum->steps,
                       sum->numbers};
  block.places[PREVIOUS] = block.total;
  return block;
}

/* Write what the steps of a group make of its pairwise matrices to the total, or add it. A group
   without matrices of its own takes those of the group before. */
static void NAME(run_group)(const NAME(Sum) *sum, NAME(RunSteps) run, const Group *group,
                            NAME(Block) *block, int add) {
  for (int64_t b = 0; b < group->n_bases; b++) {
    REAL *here = block->memory + b * ROWS * COLUMNS;
    NAME(write_base)(sum, block->base++, block->top, block->left, block->height, block->width, here);
    block->places[b] = here;
  }
  for (int64_t i = 0; i < block->height; i++)
    run(group->n_steps, block->steps, block->numbers, block->places, i * block->width, block->width,
        add, block->total + i * block->width);
  block->steps += group->n_steps;
  block->numbers += 2 * group->n_steps;
}

/* Add what was found to a result of double precision. */
static void NAME(add)(int64_t n, const REAL *restrict found, double *restrict out) {
  for (int64_t j = 0; j < n; j++) out[j] += found[j];
}

/* Add the total of a block, times vectors, to a result, and its mirror image. */
static void NAME(add_product)(const NAME(Sum) *sum, const NAME(Block) *block, int mirrored,
                              int64_t n_vectors, const REAL *vectors, REAL *found, double *out) {
  const int q = (int)n_vectors, h = block->height, w = block->width;
  const REAL one = 1, zero = 0;
  sum->gemm("N", "N", &q, &h, &w, &one, vectors + block->left * q, &q, block->total, &w, &zero,
            found, &q);
  NAME(add)((int64_t)h * q, found, out + block->top * q);
  if (!mirrored) return;
  sum->gemm("N", "T", &q, &w, &h, &one, vectors + block->top * q, &q, block->total, &w, &zero,
            found, &q);
  NAME(add)((int64_t)w * q, found, out + block->left * q);
}

/* Add the tiles of symmetric matrices, times vectors, to `out`, of n rows: those of the sum of all
   groups, or with `places` those of every group, to its place there. Returns 1 if there is no
   memory. */
int NAME(add_products)(const NAME(Sum) *sum, int64_t n_tiles, const Tile *tiles, int64_t n_vectors,
                       const REAL *vectors, double *out, const int64_t *places, int64_t n) {
  REAL *memory = malloc(sizeof(REAL) * ((sum->most_bases + 1) * ROWS * COLUMNS + ROWS * n_vectors));
  if (memory == NULL) return 1;
  REAL *found = memory + (sum->most_bases + 1) * ROWS * COLUMNS;
  NAME(RunSteps) run = NAME(fastest)();
  for (int64_t t = 0; t < n_tiles; t++)
    EACH_BLOCK(tiles[t]) {
      const int mirrored = tiles[t].top != tiles[t].left;
      NAME(Block) block = NAME(start)(sum, tiles + t, top, left, memory);
      for (int64_t g = 0; g < sum->n_groups; g++) {
        NAME(run_group)(sum, run, sum->groups + g, &block, places == NULL && g > 0);
        if (places != NULL || g == sum->n_groups - 1)
          NAME(add_product)(sum, &block, mirrored, n_vectors, vectors, found,
                            out + (places == NULL ? 0 : places[g] * n * n_vectors));
      }
    }
  free(memory);
  return 0;
}
