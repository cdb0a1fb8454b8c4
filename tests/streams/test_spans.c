#include <criterion/criterion.h>
#include <pthread.h>
#include <streams/spans.h>
#include <string.h>
#include <sys/mman.h>

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)

static eddy_spans spans;

static int64_t held_bytes(void) {
    return eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes;
}

static int64_t asked_count(void) {
    return eddy_memory_counted(EDDY_MEMORY_TENSOR).acquisitions;
}

static int64_t most_free_bytes(void) {
    return spans.root ? spans.root->most_bytes : 0;
}

static void begin(void) {
    eddy_spans_init(&spans, EDDY_MEMORY_TENSOR);
}

static void end(void) {
    eddy_spans_fini(&spans);
    cr_assert_null(spans.root);
    cr_assert_eq(spans.free_bytes, 0);
    cr_assert_eq(held_bytes(), 0);
}

/* Walks the free spans in the order of addresses: no two touch. Returns their bytes. */
static int64_t check_free(const eddy_span *tree, const char **end_of_last) {
    if (!tree)
        return 0;
    int64_t bytes = check_free(tree->left, end_of_last);
    cr_assert_lt((uintptr_t)*end_of_last, (uintptr_t)tree, "neighbours are joined");
    *end_of_last = (const char *)tree + tree->bytes;
    return bytes + tree->bytes + check_free(tree->right, end_of_last);
}

/* ---- a model: what is held, marked at both ends ---- */

enum { BLOCKS = 40 };

typedef struct holder {
    char *data[BLOCKS]; /* NULL: not held */
    int64_t bytes[BLOCKS];
    int64_t live_bytes;
    int64_t refusals;
    uint64_t state;
} holder;

static uint64_t next_random(holder *model) {
    model->state = model->state * 6364136223846793005u + 1442695040888963407u;
    return model->state >> 33;
}

static void mark(holder *model, int i) {
    model->data[i][0] = (char)i;
    model->data[i][model->bytes[i] - 1] = (char)~i;
}

static void release(holder *model, int i) {
    cr_assert_eq(model->data[i][0], (char)i);
    cr_assert_eq(model->data[i][model->bytes[i] - 1], (char)~i);
    eddy_spans_release(&spans, model->data[i], model->bytes[i]);
    model->live_bytes -= eddy_spans_rounded(&spans, model->bytes[i]);
    model->data[i] = NULL;
}

/* false: refused. */
static bool acquire(holder *model, int i) {
    int64_t bytes =
        (128 * KIB << next_random(model) % 5) + (int64_t)(next_random(model) % 3) * 1000;
    int64_t taken = eddy_spans_rounded(&spans, bytes), most = most_free_bytes(),
            held = held_bytes();
    int64_t asked = asked_count();
    char *data = eddy_spans_acquire(&spans, bytes);
    if (!data)
        return false;
    cr_assert_eq((uintptr_t)data % 64, 0);
    for (int k = 0; k < BLOCKS; k++)
        if (model->data[k])
            cr_assert(data + taken <= model->data[k] || model->data[k] + model->bytes[k] <= data);
    if (most >= taken)
        cr_assert_eq(asked_count(), asked, "what is free is used first");
    cr_assert_leq(held_bytes() - held, taken, "no more is asked for than needed");
    model->data[i] = data;
    model->bytes[i] = bytes;
    model->live_bytes += taken;
    mark(model, i);
    return true;
}

/* Random steps; where `trims`, the free spans go back now and then. Refusals leave everything as it was. */
static void run(holder *model, int steps, bool trims) {
    for (int step = 0; step < steps; step++) {
        int i = (int)(next_random(model) % BLOCKS);
        if (model->data[i])
            release(model, i);
        else if (!acquire(model, i))
            model->refusals++;
        if (trims && next_random(model) % 50 == 0) {
            int64_t given = held_bytes() - model->live_bytes;
            cr_assert_eq(eddy_spans_trim(&spans), given);
            cr_assert_eq(held_bytes(), model->live_bytes);
        }
        cr_assert_eq(held_bytes(), model->live_bytes + eddy_spans_free_bytes(&spans));
        const char *last = NULL;
        cr_assert_eq(check_free(spans.root, &last), eddy_spans_free_bytes(&spans));
    }
    for (int i = 0; i < BLOCKS; i++)
        if (model->data[i])
            release(model, i);
    cr_assert_eq(model->live_bytes, 0);
    const char *last = NULL;
    cr_assert_eq(check_free(spans.root, &last), held_bytes(), "all is free and joined");
}

Test(spans, blocks_never_overlap_and_all_memory_joins_again) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin();
        holder model = {.state = seed};
        run(&model, 3000, false);
        model.state = seed + 100;
        run(&model, 3000, true);
        cr_assert_eq(model.refusals, 0);
        end();
    }
}

Test(spans, a_refusal_at_any_step_loses_nothing) {
    int64_t injected = 1, first;
    for (first = 0; injected > 0; first++) {
        begin();
        holder model = {.state = 5};
        eddy_memory_fail_at(EDDY_MEMORY_TENSOR, first, 1);
        run(&model, 200, first % 2 == 1);
        injected = eddy_memory_failures_injected();
        cr_assert_eq(model.refusals, injected);
        eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 0);
        end();
    }
    cr_assert_gt(first, 20, "the host allocator was asked often enough");
}

/* ---- where memory comes from ---- */

Test(spans, what_is_missing_joins_what_is_free) {
    begin();
    void *first = eddy_spans_acquire(&spans, MIB);
    eddy_spans_release(&spans, first, MIB);
    void *larger = eddy_spans_acquire(&spans, 3 * MIB);
    cr_assert_not_null(larger);
    memset(larger, 1, (size_t)(3 * MIB));
    cr_assert_eq(held_bytes(), 3 * MIB);
    eddy_spans_release(&spans, larger, 3 * MIB);
    void *parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = eddy_spans_acquire(&spans, MIB);
    cr_assert_eq(held_bytes(), 3 * MIB);
    cr_assert_eq(eddy_spans_free_bytes(&spans), 0);
    eddy_spans_release(&spans, parts[0], MIB);
    eddy_spans_release(&spans, parts[2], MIB);
    eddy_spans_release(&spans, parts[1], MIB);
    cr_assert_eq(most_free_bytes(), 3 * MIB);
    end();
}

Test(spans, after_a_refusal_it_grows_from_where_it_was) {
    begin();
    char *first = eddy_spans_acquire(&spans, MIB), *second = eddy_spans_acquire(&spans, MIB);
    eddy_spans_release(&spans, second, MIB);
    eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 1);
    cr_assert_null(eddy_spans_acquire(&spans, 3 * MIB));
    cr_assert_eq(eddy_spans_free_bytes(&spans), MIB);
    char *larger = eddy_spans_acquire(&spans, 3 * MIB);
    cr_assert_eq(larger + 3 * MIB, first);
    cr_assert_eq(held_bytes(), 4 * MIB);
    eddy_spans_release(&spans, first, MIB);
    eddy_spans_release(&spans, larger, 3 * MIB);
    end();
}

Test(spans, addresses_of_somebody_else_are_passed_by) {
    begin();
    void *first = eddy_spans_acquire(&spans, MIB), *rest = eddy_spans_acquire(&spans, MIB);
    eddy_spans_release(&spans, rest, MIB);
    size_t page = (size_t)spans.page_bytes;
    char *wall = spans.low - page;
    cr_assert_eq(
        mmap(wall, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        wall);
    char *large = eddy_spans_acquire(&spans, 3 * MIB);
    cr_assert_not_null(large);
    memset(large, 1, (size_t)(3 * MIB));
    cr_assert_eq(held_bytes(), 5 * MIB, "one free span of 1 MiB stays");
    cr_assert_eq(eddy_spans_free_bytes(&spans), MIB);
    char *next = eddy_spans_acquire(&spans, 2 * MIB);
    cr_assert_eq(next + 2 * MIB, large, "it grows from its new place");
    cr_assert_eq(eddy_spans_acquire(&spans, MIB), rest);
    eddy_spans_release(&spans, first, MIB);
    eddy_spans_release(&spans, rest, MIB);
    eddy_spans_release(&spans, large, 3 * MIB);
    eddy_spans_release(&spans, next, 2 * MIB);
    end();
    munmap(wall, page);
}

Test(spans, a_trim_leaves_no_hole_above_what_comes_next) {
    begin();
    char *kept = eddy_spans_acquire(&spans, MIB), *freed = eddy_spans_acquire(&spans, 2 * MIB);
    eddy_spans_release(&spans, freed, 2 * MIB);
    cr_assert_eq(eddy_spans_trim(&spans), 2 * MIB);
    char *next = eddy_spans_acquire(&spans, 3 * MIB);
    cr_assert_eq(next + 3 * MIB, kept);
    eddy_spans_release(&spans, kept, MIB);
    eddy_spans_release(&spans, next, 3 * MIB);
    cr_assert_eq(most_free_bytes(), 4 * MIB);
    cr_assert_eq(eddy_spans_trim(&spans), 4 * MIB);
    char *again = eddy_spans_acquire(&spans, MIB);
    cr_assert_eq(again, kept, "the place is kept");
    eddy_spans_release(&spans, again, MIB);
    end();
}

Test(spans, large_blocks_begin_in_a_whole_huge_page) {
    begin();
    const int64_t huge = 2 * MIB, bytes = 4000000;
    void *blocks[9];
    for (int i = 0; i < 8; i++) {
        blocks[i] = eddy_spans_acquire(&spans, bytes);
        cr_assert_eq((uintptr_t)spans.low % (uintptr_t)huge, 0);
        cr_assert_lt(eddy_spans_free_bytes(&spans), huge);
    }
    eddy_memory_limit_set(held_bytes() + bytes);
    int64_t most = held_bytes() + eddy_spans_rounded(&spans, bytes) - eddy_spans_free_bytes(&spans);
    blocks[8] = eddy_spans_acquire(&spans, bytes);
    cr_assert_eq(held_bytes(), most, "nothing is spared where memory is scarce");
    eddy_memory_limit_set(0);
    for (int i = 0; i < 9; i++)
        eddy_spans_release(&spans, blocks[i], bytes);
    end();
}

static const int64_t UNIT = MIB, PRODUCTS = 3 * MIB, WIDE = 2754 * KIB;
static int64_t live, live_peak;

static void *take(int64_t bytes) {
    live += bytes;
    live_peak = live > live_peak ? live : live_peak;
    return eddy_spans_acquire(&spans, bytes);
}

static void give(void *data, int64_t bytes) {
    live -= bytes;
    eddy_spans_release(&spans, data, bytes);
}

/* What a layer of a transformer takes and gives in inference; its output. */
static void *layer_of(void *x, bool keeps_x) {
    void *norm = take(UNIT), *products = take(PRODUCTS), *units[7], *wide[4];
    for (int i = 0; i < 3; i++)
        units[i] = take(UNIT);
    give(units[2], UNIT);
    for (int i = 2; i < 6; i++)
        units[i] = take(UNIT);
    give(norm, UNIT);
    give(products, PRODUCTS);
    for (int i = 0; i < 5; i++)
        give(units[i], UNIT);
    if (!keeps_x)
        give(x, UNIT);
    norm = take(UNIT);
    for (int i = 0; i < 4; i++)
        wide[i] = take(WIDE);
    units[6] = take(UNIT);
    void *output = take(UNIT);
    give(norm, UNIT);
    for (int i = 0; i < 4; i++)
        give(wide[i], WIDE);
    give(units[6], UNIT);
    give(units[5], UNIT);
    return output;
}

Test(spans, several_sizes_share_their_memory) {
    begin();
    void *input = take(UNIT);
    for (int pass = 0; pass < 3; pass++) {
        void *x = layer_of(input, true);
        for (int layer = 1; layer < 4; layer++)
            x = layer_of(x, false);
        give(x, UNIT);
    }
    give(input, UNIT);
    cr_assert_eq(live, 0);
    int64_t held_peak = eddy_memory_counted(EDDY_MEMORY_TENSOR).peak_bytes;
    cr_assert_leq(held_peak, live_peak + live_peak / 20, "%lld for %lld", (long long)held_peak,
                  (long long)live_peak);
    end();
}

/* ---- threads ---- */

static void *churn(void *context) {
    uint64_t state = (uint64_t)(uintptr_t)context * 977 + 1;
    char *held[8] = {0};
    int64_t sizes[8];
    for (int i = 0; i < 4000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int slot = (int)(state >> 61);
        if (held[slot]) {
            if (*(uint64_t *)held[slot] != (uint64_t)context ||
                held[slot][sizes[slot] - 1] != (char)slot)
                return "somebody else's block";
            eddy_spans_release(&spans, held[slot], sizes[slot]);
            held[slot] = NULL;
        } else {
            sizes[slot] = 128 * KIB + (int64_t)(state >> 20 & 0xfffff);
            held[slot] = eddy_spans_acquire(&spans, sizes[slot]);
            if (!held[slot])
                return "no memory";
            *(uint64_t *)held[slot] = (uint64_t)context;
            held[slot][sizes[slot] - 1] = (char)slot;
        }
        if (i % 100 == 0)
            eddy_spans_trim(&spans);
    }
    for (int slot = 0; slot < 8; slot++)
        if (held[slot])
            eddy_spans_release(&spans, held[slot], sizes[slot]);
    return NULL;
}

Test(spans, threads_share_them) {
    begin();
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong, "%s", (const char *)wrong);
    }
    const char *last = NULL;
    cr_assert_eq(check_free(spans.root, &last), held_bytes());
    end();
}
