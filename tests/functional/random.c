#include <tests/functional/random.h>

#include <base/dtype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

static uint64_t state, seed;

uint64_t random_seed(void) {
    if (seed == 0) {
        const char *text = getenv("EDDY_TEST_SEED");
        seed = text ? strtoull(text, NULL, 0) : 20250117;
        state = seed;
    }
    return seed;
}

/* SplitMix64. */
uint64_t random_next(void) {
    random_seed();
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t random_below(int64_t bound) {
    return (int64_t)(random_next() % (uint64_t)bound);
}

static double special(eddy_dtype dtype) {
    static const double everywhere[] = {0.0,       -0.0, 1.0, -1.0, INFINITY,
                                        -INFINITY, NAN,  0.5, 88.8, -88.8};
    static const double extremes[][3] = {
        {FLT_MAX, FLT_MIN, 0x1p-149}, {DBL_MAX, DBL_MIN, 0x1p-1074}, {65504, 0x1p-14, 0x1p-24}};
    int64_t pick = random_below(16);
    if (pick < 10)
        return everywhere[pick];
    const double *own = extremes[dtype == EDDY_F64 ? 1 : dtype == EDDY_F16 ? 2 : 0];
    double value = own[pick % 3];
    return pick < 13 ? value : -value;
}

void random_element(eddy_dtype dtype, void *element) {
    if (!eddy_dtype_is_float(dtype)) {
        static const int64_t ends[] = {0,         1,         -1,       INT64_MAX, INT64_MIN,
                                       INT32_MIN, INT16_MIN, INT8_MIN, INT8_MAX,  UINT8_MAX};
        int64_t value = random_below(4) == 0 ? ends[random_below(10)] : (int64_t)random_next();
        if (random_below(2) == 0)
            value = random_below(7) - 3;
        /* Cut off, not saturated. */
        if (dtype == EDDY_BOOL)
            *(uint8_t *)element = value & 1;
        else
            memcpy(element, &value, eddy_dtype_bytes(dtype));
        return;
    }
    double value = ((double)(int64_t)random_next() * 0x1p-63) * ldexp(1, (int)random_below(12) - 4);
    if (random_below(8) == 0)
        value = special(dtype);
    else if (random_below(8) == 0)
        value = ldexp(value, (int)random_below(60) - 30);
    eddy_dtype_store_f64(dtype, element, value);
}
