/* The provider for each product. It is a committed table, never a measurement at run time: the same program gives the same
 * bits in every run. Update it from the output of bench/gemm_table. */
#include <kernels/cpu/isa.h>
#include <kernels/cpu/matrix/gemm.h>
#include <stddef.h>

typedef struct rule {
    eddy_isa isa; /* and higher ones */
    eddy_dtype dtype;
    double least_work; /* m * n * k at least */
    eddy_gemm_provider provider;
} rule;

/* The first rule that matches and whose provider is usable decides; the last rule always is. For tiny products a call of a library costs
 * more than the product, and oneDNN's start more than a program of small ones. Products with a vector need no library at any size. The instruction set `portable` uses our own
 * loops throughout, so that EDDY_ISA=portable shows what they compute. */
static const rule rules[] = {
    {EDDY_ISA_V2, EDDY_F32, 32 * 32 * 32, EDDY_GEMM_DNNL},
    {EDDY_ISA_V2, EDDY_F64, 10 * 10 * 10, EDDY_GEMM_BLIS},
    {EDDY_ISA_PORTABLE, EDDY_F32, 0, EDDY_GEMM_PORTABLE},
    {EDDY_ISA_PORTABLE, EDDY_F64, 0, EDDY_GEMM_PORTABLE},
};

eddy_gemm_f32_fn *eddy_gemm_provider_f32(eddy_gemm_provider provider) {
    switch (provider) {
#ifdef EDDY_HAVE_DNNL
    case EDDY_GEMM_DNNL:
        return eddy_gemm_dnnl_f32;
#endif
    case EDDY_GEMM_VECTOR:
        return eddy_gemm_vector_f32;
    case EDDY_GEMM_PORTABLE:
        return eddy_gemm_portable_f32;
    default:
        return NULL;
    }
}

eddy_gemm_f64_fn *eddy_gemm_provider_f64(eddy_gemm_provider provider) {
    switch (provider) {
#ifdef EDDY_HAVE_BLIS
    case EDDY_GEMM_BLIS:
        return eddy_gemm_blis_f64;
#endif
    case EDDY_GEMM_VECTOR:
        return eddy_gemm_vector_f64;
    case EDDY_GEMM_PORTABLE:
        return eddy_gemm_portable_f64;
    default:
        return NULL;
    }
}

const char *eddy_gemm_provider_name(eddy_gemm_provider provider) {
    static const char *const names[] = {
#define EDDY_GEMM_PROVIDER_ROW(enumerator, name) #name,
        EDDY_GEMM_PROVIDER_LIST(EDDY_GEMM_PROVIDER_ROW)
#undef EDDY_GEMM_PROVIDER_ROW
    };
    return (unsigned)provider < EDDY_GEMM_PROVIDER_COUNT ? names[provider] : "?";
}

/* Whether the build has the provider, and the provider is usable. BLIS has only plain loops for CPUs newer than itself;
 * ours are much faster. oneDNN may have had no room to start. */
static bool is_fit(eddy_gemm_provider provider, eddy_dtype dtype) {
#ifdef EDDY_HAVE_BLIS
    if (provider == EDDY_GEMM_BLIS && !eddy_gemm_blis_is_tuned())
        return false;
#endif
#ifdef EDDY_HAVE_DNNL
    if (provider == EDDY_GEMM_DNNL && eddy_gemm_dnnl_is_left_out())
        return false;
#endif
    return dtype == EDDY_F32 ? eddy_gemm_provider_f32(provider) != NULL
                             : eddy_gemm_provider_f64(provider) != NULL;
}

eddy_gemm_provider eddy_gemm_choose(eddy_isa isa, eddy_dtype dtype, int64_t m, int64_t n,
                                    int64_t k) {
    double work = (double)m * (double)n * (double)k;
    if (m == 1 || n == 1)
        return EDDY_GEMM_VECTOR;
    for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
        const rule *at = &rules[r];
        if (isa >= at->isa && dtype == at->dtype && work >= at->least_work &&
            is_fit(at->provider, dtype))
            return at->provider;
    }
    return EDDY_GEMM_PORTABLE;
}

static bool gemm_table_start(eddy_gemm_provider provider) {
#ifdef EDDY_HAVE_DNNL
    if (provider == EDDY_GEMM_DNNL)
        return eddy_gemm_dnnl_start();
#endif
    (void)provider;
    return false;
}

eddy_gemm_provider eddy_gemm_prepare(eddy_dtype dtype, int64_t m, int64_t n, int64_t k,
                                     bool *has_started) {
    eddy_gemm_provider provider = eddy_gemm_choose(eddy_isa_chosen(), dtype, m, n, k);
    if (provider != EDDY_GEMM_DNNL)
        return provider;
    *has_started |= gemm_table_start(provider);
    /* The start may have failed. */
    return eddy_gemm_choose(eddy_isa_chosen(), dtype, m, n, k);
}

bool eddy_gemm_start_within(eddy_dtype dtype, double work) {
    bool is_first = false;
    eddy_isa isa = eddy_isa_chosen();
    for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++)
        if (isa >= rules[r].isa && dtype == rules[r].dtype && work >= rules[r].least_work &&
            is_fit(rules[r].provider, dtype))
            is_first |= gemm_table_start(rules[r].provider);
    return is_first;
}

/* Halves a side to a multiple of 16, which suits the libraries' loops, unless that is narrower than `least`. */
static bool halve(int64_t *width, int64_t least) {
    int64_t half = ((*width + 1) / 2 + 15) / 16 * 16;
    if (half < least || half >= *width)
        return false;
    *width = half;
    return true;
}

/* The least work of a tile grows with the number of tiles. Halves of 20 us serve two threads, a few tiles of 0.1 ms a few
 * threads. Small tiles cost a single thread time; the gain of many threads is worth that only if the product takes long. */
static bool is_worth_cutting(int64_t tiles, double tile_work) {
    double least_work = tiles < 2    ? 2e6
                        : tiles < 4  ? 10e6
                        : tiles < 8  ? 25e6
                        : tiles < 16 ? 100e6
                                     : 1e9;
    return tiles < 64 && tile_work >= 2 * least_work;
}

/* For a product with a vector, which packs nothing and takes as long as reading its matrix: tiles of 5 us. */
static bool is_worth_cutting_vector(int64_t tiles, double tile_work) {
    return tiles < 64 && tile_work >= 5e5;
}

/* Neighbouring tiles pack the same operands again. This is cheap beside their work as long as tiles have 256 rows and
 * columns. */
eddy_gemm_cut eddy_gemm_cut_for(int64_t m, int64_t n, int64_t k) {
    const int64_t good = 256, least_rows = 128, least_columns = 64;
    eddy_gemm_cut cut = {.rows = m, .columns = n, .row_tiles = 1, .column_tiles = 1};
    bool (*is_worth)(int64_t, double) =
        m == 1 || n == 1 ? is_worth_cutting_vector : is_worth_cutting;
    while (is_worth(cut.row_tiles * cut.column_tiles,
                    2.0 * (double)cut.rows * (double)cut.columns * (double)k) &&
           (halve(&cut.rows, good) || halve(&cut.columns, good) || halve(&cut.rows, least_rows) ||
            halve(&cut.columns, least_columns))) {
        cut.row_tiles = (m + cut.rows - 1) / cut.rows;
        cut.column_tiles = (n + cut.columns - 1) / cut.columns;
    }
    return cut;
}
