/* The steps of a program for one row of a tile, one loop each, and sums of absolute differences, for
   the instructions of TARGET. */

static inline __attribute__((always_inline)) REAL LEVEL(exponential)(REAL x) {
  /* exp(x) = 2^k exp(r) with |r| <= log(2)/2, to one unit in the last place; x <= 0. Adding SHIFT
     rounds to the integer k, and leaves k + bias in the last bits. NaN stays NaN. */
  x = x < (REAL)LEAST_EXPONENT ? (REAL)LEAST_EXPONENT : x;
  REAL shifted = x * (REAL)1.4426950408889634 + (REAL)SHIFT;
  REAL k = shifted - (REAL)SHIFT;
  REAL r = (x - k * (REAL)LOG2_HIGH) - k * (REAL)LOG2_LOW;
  BITS bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (BITS)((sizeof(BITS) == 8 ? (uint64_t)bits << MANTISSA : (uint32_t)bits << MANTISSA));
  REAL power;
  memcpy(&power, &bits, sizeof power);
  return power * ((REAL)1.0 + (r + r * r * POLYNOMIAL(r)));
}

TARGET static void LEVEL(run_steps)(int64_t n_steps, const Step *steps, const REAL *numbers,
                                    const REAL *const *bases, int64_t offset, int64_t width,
                                    int add, REAL *out) {
  REAL value[COLUMNS], kept[COLUMNS], total[COLUMNS];
  for (int64_t j = 0; j < width; j++) total[j] = add ? out[j] : 0;
  for (int64_t step = 0; step < n_steps; step++) {
    const int64_t n = steps[step].n;
    const REAL a = numbers[2 * step], b = numbers[2 * step + 1];
    const REAL *base = bases[steps[step].base] + offset;
    switch (steps[step].operation) {
    case EXP:
      for (int64_t j = 0; j < width; j++) value[j] = LEVEL(exponential)(-a * base[j]);
      break;
    case ROOT_EXP:
      for (int64_t j = 0; j < width; j++)
        value[j] = LEVEL(exponential)(-a * (REAL)(sizeof(REAL) == 8 ? sqrt(base[j]) : sqrtf(base[j])));
      break;
    case POWER:
      for (int64_t j = 0; j < width; j++) value[j] = n ? a * base[j] + b : 1;
      for (int64_t k = 1; k < n; k++)
        for (int64_t j = 0; j < width; j++) value[j] *= a * base[j] + b;
      break;
    case SQUARE: /* of what is not so small that its square is denormal */
      for (int64_t k = 0; k < n; k++)
        for (int64_t j = 0; j < width; j++) {
          REAL x = value[j] < (REAL)TINY ? (REAL)TINY : value[j];
          value[j] = x * x;
        }
      break;
    case KEEP:
      for (int64_t j = 0; j < width; j++) kept[j] = value[j];
      break;
    case TIMES:
      for (int64_t j = 0; j < width; j++) value[j] *= kept[j];
      break;
    case ADD:
      for (int64_t j = 0; j < width; j++) total[j] += a * value[j];
      break;
    default:
      for (int64_t j = 0; j < width; j++) total[j] += a;
    }
  }
  for (int64_t j = 0; j < width; j++) out[j] = total[j];
}

/* Write sum_l |x_il - z_jl| of rows of k numbers, to rows of `stride` numbers. */
TARGET static void LEVEL(city)(const REAL *x, const REAL *z, int64_t k, int64_t height,
                               int64_t width, REAL *out, int64_t stride) {
  REAL turned[NUMBERS][LANES];
  for (int64_t left = 0; left < width; left += LANES)
    for (int64_t first = 0; first < k; first += NUMBERS) {
      const int w = size_of(left, width, LANES), n = size_of(first, k, NUMBERS);
      for (int l = 0; l < n; l++)
        for (int j = 0; j < LANES; j++)
          turned[l][j] = j < w ? z[(left + j) * k + first + l] : 0;
      for (int64_t i = 0; i < height; i++) {
        REAL sums[LANES] = {0}, *to = out + i * stride + left;
        for (int j = 0; j < w && first > 0; j++) sums[j] = to[j];
        for (int l = 0; l < n; l++) {
          const REAL own = x[i * k + first + l];
          for (int j = 0; j < LANES; j++) {
            const REAL difference = own - turned[l][j];
            sums[j] += difference < 0 ? -difference : difference;
          }
        }
        for (int j = 0; j < w; j++) to[j] = sums[j];
      }
    }
}
