#include "../calls.h"
#include <interpreter/host/row_major.h>

/* A team that runs the slices backwards and counts them. */
typedef struct backwards_team {
    eddy_kernel_team team;
    int64_t slices;
} backwards_team;

static void run_backwards(eddy_kernel_team *team, int64_t count, int64_t grain,
                          void (*body)(void *context, int64_t begin, int64_t end), void *context) {
    int64_t slices = (count + grain - 1) / grain;
    for (int64_t s = slices; s-- > 0;)
        body(context, s * grain, (s + 1) * grain < count ? (s + 1) * grain : count);
    ((backwards_team *)(void *)team)->slices = slices;
}

/* Slices of a layout over elements that are their own numbers, cut to their size. */
static void check_elements(const eddy_layout *layout, int64_t storage_count, size_t bytes,
                           bool is_cut) {
    int64_t count;
    cr_assert(eddy_shape_count(layout->rank, layout->dims, &count));
    char *storage = malloc((size_t)storage_count * bytes),
         *packed = malloc(((size_t)count + 1) * bytes);
    for (int64_t i = 0; i < storage_count; i++)
        memcpy(storage + (size_t)i * bytes, &i, bytes);
    memset(packed + (size_t)count * bytes, 0x5a, bytes);
    backwards_team team = {.team = {.parallel_for = run_backwards, .thread_count = 2}};
    eddy_row_major_copy(layout, bytes, storage, packed, &team.team);
    cr_assert_eq(team.slices > 1, is_cut, "%lld slices", (long long)team.slices);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = layout->offset, rest = i;
        for (int32_t d = layout->rank - 1; d >= 0; d--) {
            at += rest % layout->dims[d] * layout->strides[d];
            rest /= layout->dims[d];
        }
        cr_assert_eq(memcmp(packed + (size_t)i * bytes, &at, bytes), 0, "element %lld of %zu bytes",
                     (long long)i, bytes);
    }
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(packed[(size_t)count * bytes + i], 0x5a);
    free(storage);
    free(packed);
}

static void check_layout(const eddy_layout *layout, int64_t storage_count, bool is_cut) {
    for (size_t bytes = 1; bytes <= 8; bytes *= 2)
        check_elements(layout, storage_count, bytes, is_cut);
}

Test(row_major, every_layout_comes_row_major_however_it_is_cut) {
    check_layout(&(eddy_layout){.rank = 0, .offset = 3}, 4, false);
    check_layout(&(eddy_layout){.rank = 1, .dims = {1000}, .strides = {1}, .offset = 7}, 1007,
                 false);
    check_layout(&(eddy_layout){.rank = 1, .dims = {200003}, .strides = {1}, .offset = 5}, 200008,
                 true);
    check_layout(&(eddy_layout){.rank = 1, .dims = {200003}, .strides = {3}}, 600009, true);
    check_layout(&(eddy_layout){.rank = 2, .dims = {397, 401}, .strides = {1, 397}}, 397 * 401,
                 true);
    check_layout(&(eddy_layout){.rank = 2, .dims = {601, 300}, .strides = {397, 1}, .offset = 50},
                 601 * 397, true);
    check_layout(&(eddy_layout){.rank = 2, .dims = {3, 70000}, .strides = {70001, 1}, .offset = 1},
                 210004, true);
    check_layout(&(eddy_layout){.rank = 3, .dims = {61, 17, 233}, .strides = {1, 61 * 233, 61}},
                 61 * 17 * 233, true);
    check_layout(&(eddy_layout){.rank = 3, .dims = {700, 1, 300}, .strides = {0, 9, 1}}, 300, true);
    check_layout(&(eddy_layout){.rank = 2, .dims = {5, 0}, .strides = {1, 1}}, 5, false);
}

Test(row_major, a_large_tensor_is_read_by_a_team_of_any_size) {
    enum { ROWS = 601, COLUMNS = 503 };
    float *values = malloc(ROWS * COLUMNS * sizeof(float));
    for (int64_t threads = 1; threads <= 4; threads++) {
        eddy_runtime *runtime = eddy_runtime_create(&(eddy_runtime_options){.threads = threads});
        cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
        eddy_tensor *m = counting(EDDY_SHAPE(ROWS, COLUMNS));
        for (int round = 0; round < 20; round++) {
            cr_assert_eq(eddy_read(m, values, ROWS * COLUMNS * sizeof(float), NULL), EDDY_OK);
            for (int i = 0; i < ROWS * COLUMNS; i++)
                cr_assert_eq(values[i], (float)i);
            cr_assert_eq(eddy_read(eddy_t(m), values, ROWS * COLUMNS * sizeof(float), NULL),
                         EDDY_OK);
            for (int i = 0; i < ROWS * COLUMNS; i++)
                cr_assert_eq(values[i], (float)(i % ROWS * COLUMNS + i / ROWS));
            memset(values, 0, ROWS * COLUMNS * sizeof(float));
        }
        eddy_runtime_use(NULL);
        eddy_runtime_release(&runtime);
    }
    free(values);
}
