/* The elementwise kernels of CUDA devices, run on the host (tests/fake_cuda/kernels), against the loops of the CPU: the same bits. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/scalar.h>
#include <eddy/status.h>
#include <functional/cuda_kernels.h>
#include <functional/loops.h>
#include <functional/loops_list.h>
#include <functional/op_table.h>
#include <kernels/cuda/parameters.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/kernels/grid.h>
#include <tests/functional/random.h>

#define DECLARE(group_, op_, dtype_, stem_, inputs_, attribute_bytes_)                             \
    void stem_##_dense(const void *parameters);                                                    \
    void stem_##_strided(const void *parameters);                                                  \
    extern const unsigned stem_##_dense_bytes, stem_##_strided_bytes;
EDDY_CUDA_KERNEL_LIST(DECLARE)
#undef DECLARE

typedef struct kernel {
    const char *op;
    eddy_dtype dtype;
    eddy_grid_kernel *dense, *strided;
    const unsigned *dense_bytes, *strided_bytes;
    int32_t inputs;
} kernel;

#define KERNEL(group_, op_, dtype_, stem_, inputs_, attribute_bytes_)                              \
    {.op = #op_,                                                                                   \
     .dtype = EDDY_##dtype_,                                                                       \
     .dense = stem_##_dense,                                                                       \
     .strided = stem_##_strided,                                                                   \
     .dense_bytes = &stem_##_dense_bytes,                                                          \
     .strided_bytes = &stem_##_strided_bytes,                                                      \
     .inputs = inputs_},
static const kernel kernels[] = {EDDY_CUDA_KERNEL_LIST(KERNEL)};
#undef KERNEL

typedef struct row {
    const char *op;
    const eddy_op *of;
    eddy_dtype dtype;
    eddy_loop_fn *const *loops[EDDY_ISA_COUNT]; /* where the tables keep them, by instruction set */
} row;

#define LOOP(family, level, loop) &EDDY_ISA_TABLE(eddy_cpu_loops_##family, level).loop
#define ROW(family_, loop_, op_, dtype_, ulp_)                                                     \
    {.op = #op_,                                                                                   \
     .of = &eddy_op_##op_,                                                                         \
     .dtype = EDDY_##dtype_,                                                                       \
     .loops = {LOOP(family_, PORTABLE, loop_), LOOP(family_, V2, loop_), LOOP(family_, V3, loop_), \
               LOOP(family_, V4, loop_)}},
static const row rows[] = {EDDY_LOOPS_LIST(ROW)};
#undef ROW

#define ROWS (sizeof(rows) / sizeof(rows[0]))
_Static_assert(sizeof(kernels) / sizeof(kernels[0]) == ROWS, "every loop has a kernel");

#define OPERANDS EDDY_CUDA_ELEMENTWISE_OPERANDS
#define GUARD 64

/* ---- operands ---- */

typedef struct layout {
    int32_t rank;
    int64_t dims[EDDY_CUDA_RANK_MAX];
    int64_t steps[OPERANDS][EDDY_CUDA_RANK_MAX]; /* elements between neighbours; the output last */
    int64_t shift[OPERANDS];                     /* elements off the alignment of vectors */
} layout;

static int64_t count_of(const layout *l) {
    int64_t count = 1;
    for (int32_t d = 0; d < l->rank; d++)
        count *= l->dims[d];
    return count;
}

typedef struct operand {
    eddy_dtype dtype;
    size_t size, bytes;
    char *memory, *data, *before;
    const layout *in;
    const int64_t *steps;
} operand;

static char *element_of(const operand *o, char *data, int64_t index) {
    for (int32_t d = o->in->rank - 1; d >= 0; d--) {
        data += index % o->in->dims[d] * o->steps[d] * (int64_t)o->size;
        index /= o->in->dims[d];
    }
    return data;
}

/* Floats are of every size, many of them special, or of everyday size. */
static void make(operand *o, eddy_dtype dtype, const layout *in, int32_t number, bool is_tame) {
    int64_t below = 0, above = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        int64_t span = (in->dims[d] - 1) * in->steps[number][d];
        *(span < 0 ? &below : &above) += span;
    }
    if (count_of(in) == 0)
        below = above = 0;
    o->dtype = dtype;
    o->size = eddy_dtype_bytes(dtype);
    o->in = in;
    o->steps = in->steps[number];
    o->bytes = (size_t)(above - below + 1 + in->shift[number]) * o->size + 2 * GUARD;
    o->bytes = (o->bytes + GUARD - 1) / GUARD * GUARD;
    o->memory = aligned_alloc(GUARD, o->bytes);
    o->before = malloc(o->bytes);
    o->data = o->memory + GUARD + (in->shift[number] - below) * (int64_t)o->size;
    for (size_t at = 0; at < o->bytes; at += o->size) {
        random_element(dtype, o->memory + at);
        if (is_tame && eddy_dtype_is_float(dtype))
            eddy_dtype_store_f64(dtype, o->memory + at, (double)random_below(4001) / 256 - 7.5);
    }
    memcpy(o->before, o->memory, o->bytes);
}

static void discard(operand *o) {
    free(o->memory);
    free(o->before);
}

/* ---- attributes ---- */

static eddy_scalar random_scalar(eddy_dtype dtype) {
    static const double everyday[] = {2, 0.5, 3, -1, 0};
    int64_t pick = random_below(10);
    if (pick < 5 && eddy_dtype_is_float(dtype))
        return pick == 2 ? eddy_scalar_int(2) : eddy_scalar_float(everyday[pick]);
    if (pick < 5)
        return dtype == EDDY_BOOL ? eddy_scalar_bool(pick & 1) : eddy_scalar_int(pick);
    char element[8];
    random_element(dtype, element);
    if (eddy_dtype_is_float(dtype))
        return eddy_scalar_float(eddy_dtype_load_f64(dtype, element));
    int64_t integer = eddy_dtype_load_i64(dtype, element);
    return dtype == EDDY_BOOL ? eddy_scalar_bool(integer != 0) : eddy_scalar_int(integer);
}

static void random_attributes(const eddy_op *op, eddy_dtype dtype, uint64_t *attributes) {
    memset(attributes, 0, EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES);
    cr_assert_leq(op->attribute_bytes, EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES, "%s", op->name);
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        char *place = (char *)attributes + attribute->offset;
        eddy_scalar scalar = random_scalar(dtype);
        double number = eddy_dtype_is_float(dtype) && scalar.kind == EDDY_SCALAR_FLOAT
                            ? scalar.value.floating
                            : 0.75;
        int32_t choice = (int32_t)random_below(2);
        if (attribute->type == EDDY_ATTRIBUTE_SCALAR)
            memcpy(place, &scalar, sizeof(scalar));
        else if (attribute->type == EDDY_ATTRIBUTE_FLOAT)
            memcpy(place, &number, sizeof(number));
        else
            memcpy(place, &choice, sizeof(choice));
    }
}

/* ---- one call ---- */

typedef struct call {
    const row *of;
    const kernel *kernel;
    layout in;
    bool is_inplace;
    operand operands[OPERANDS];
    int32_t inputs, target; /* the target is an operand, or, in place, input 0 */
    uint64_t attributes[EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES / sizeof(uint64_t)];
} call;

static void call_make(call *c) {
    const eddy_op *op = c->of->of;
    bool is_tame = random_below(2) == 0;
    c->inputs = op->operand_count;
    c->target = c->is_inplace ? 0 : c->inputs;
    for (int32_t k = 0; k <= c->inputs; k++) {
        bool is_bool =
            k == c->inputs ? op->result == EDDY_RESULT_BOOL : (bool)op->operands[k].is_bool;
        make(&c->operands[k], is_bool ? EDDY_BOOL : c->of->dtype, &c->in,
             k == c->inputs ? OPERANDS - 1 : k, is_tame);
    }
    random_attributes(op, c->of->dtype, c->attributes);
}

static void call_discard(call *c) {
    for (int32_t k = 0; k <= c->inputs; k++)
        discard(&c->operands[k]);
}

/* The loop's results of contiguous copies of the operands. */
static char *expected(call *c, eddy_isa isa) {
    int64_t count = count_of(&c->in), strides[OPERANDS];
    char *data[OPERANDS];
    for (int32_t k = 0; k <= c->inputs; k++) {
        operand *o = &c->operands[k];
        strides[k] = (int64_t)o->size;
        data[k] = aligned_alloc(64, ((size_t)count * o->size + 64) / 64 * 64);
        for (int64_t i = 0; i < count; i++)
            memcpy(data[k] + i * strides[k], element_of(o, o->before + (o->data - o->memory), i),
                   o->size);
    }
    (*c->of->loops[isa])(data, strides, count, c->attributes);
    for (int32_t k = 0; k < c->inputs; k++)
        free(data[k]);
    return data[c->inputs];
}

static bool is_same(eddy_dtype dtype, const char *one, const char *other) {
    return memcmp(one, other, eddy_dtype_bytes(dtype)) == 0 ||
           (eddy_dtype_is_float(dtype) && isnan(eddy_dtype_load_f64(dtype, one)) &&
            isnan(eddy_dtype_load_f64(dtype, other)));
}

static void check(call *c, const char *want, const char *form, const char *isa) {
    operand *out = &c->operands[c->target];
    int64_t count = count_of(&c->in);
    for (int64_t i = 0; i < count; i++) {
        const char *got = element_of(out, out->data, i), *wanted = want + i * (int64_t)out->size;
        const operand *first = &c->operands[0];
        cr_assert(
            is_same(out->dtype, got, wanted),
            "%s %s, %s, %s: [%lld] of %lld, rank %d, of %a: got %a, want %a, seed %llu", c->of->op,
            eddy_dtype_name(c->of->dtype), form, isa, (long long)i, (long long)count, c->in.rank,
            eddy_dtype_load_f64(
                first->dtype, element_of(first, first->before + (first->data - first->memory), i)),
            eddy_dtype_load_f64(out->dtype, got), eddy_dtype_load_f64(out->dtype, wanted),
            (unsigned long long)random_seed());
    }
}

/* Puts everything back as it was, and finds what was written beside the target's elements. */
static void restore(call *c, const char *form) {
    operand *out = &c->operands[c->target];
    for (int64_t i = 0, count = count_of(&c->in); i < count; i++)
        memcpy(element_of(out, out->data, i),
               element_of(out, out->before + (out->data - out->memory), i), out->size);
    for (int32_t k = 0; k <= c->inputs; k++)
        cr_assert_eq(memcmp(c->operands[k].memory, c->operands[k].before, c->operands[k].bytes), 0,
                     "%s %s, %s writes beside its target (operand %d), seed %llu", c->of->op,
                     eddy_dtype_name(c->of->dtype), form, k, (unsigned long long)random_seed());
}

static uint64_t marks[EDDY_CUDA_WORDS];
static eddy_cuda_word word;

static eddy_cuda_gate open_gate(void) {
    return (eddy_cuda_gate){.ticket = 1000, .marks = marks, .word = &word};
}

static void launch(eddy_grid_kernel *run, const void *parameters) {
    static const unsigned widths[] = {1, 7, 32, 64};
    unsigned grid[3] = {(unsigned)random_below(3) + 1, 1, 1};
    unsigned block[3] = {widths[random_below(4)], 1, 1};
    eddy_grid_run(run, parameters, grid, block, 0);
}

static void run_dense(call *c) {
    eddy_cuda_dense p = {
        .gate = open_gate(), .count = count_of(&c->in), .broadcast = 0, .is_aligned = 1};
    for (int32_t k = 0; k <= c->inputs; k++) {
        const operand *o = &c->operands[k == c->inputs ? c->target : k];
        p.data[k] = o->data;
        if (o->steps[0] == 0)
            p.broadcast |= 1u << k;
        else if ((uintptr_t)o->data % 16 != 0)
            p.is_aligned = 0;
    }
    memcpy(p.attributes, c->attributes, sizeof(p.attributes));
    launch(c->kernel->dense, &p);
}

static void run_strided(call *c) {
    eddy_cuda_strided p = {
        .gate = open_gate(), .count = (uint32_t)count_of(&c->in), .rank = c->in.rank};
    for (int32_t d = 0; d < c->in.rank; d++)
        p.dims[d] = eddy_cuda_divisor_of(c->in.dims[d] > 0 ? (uint32_t)c->in.dims[d] : 1);
    for (int32_t k = 0; k <= c->inputs; k++) {
        const operand *o = &c->operands[k == c->inputs ? c->target : k];
        p.data[k] = o->data;
        for (int32_t d = 0; d < c->in.rank; d++)
            p.strides[k][d] = o->steps[d] * (int64_t)o->size;
    }
    memcpy(p.attributes, c->attributes, sizeof(p.attributes));
    launch(c->kernel->strided, &p);
}

static void run_call(call *c, bool is_dense) {
    call_make(c);
    char *portable = expected(c, EDDY_ISA_PORTABLE), *best = expected(c, eddy_isa_machine());
    for (int form = is_dense ? 0 : 1; form < 2; form++) {
        const char *name = form == 0 ? "dense" : "strided";
        (form == 0 ? run_dense : run_strided)(c);
        check(c, portable, name, "portable");
        check(c, best, name, eddy_isa_name(eddy_isa_machine()));
        restore(c, name);
    }
    free(portable);
    free(best);
    call_discard(c);
}

/* ---- layouts ---- */

static bool can_be_inplace(const row *r) {
    return r->of->result == EDDY_RESULT_COMPUTE && !r->of->operands[0].is_bool;
}

/* Contiguous, some inputs one element for all, on and off the alignment. Bit k of `broadcast` is of input k. */
static void run_contiguous(const row *r, const kernel *k, int64_t count, unsigned broadcast,
                           int64_t shift) {
    call c = {.of = r, .kernel = k, .in = {.rank = 1, .dims = {count}}};
    for (int32_t o = 0; o < OPERANDS; o++) {
        c.in.steps[o][0] = o < OPERANDS - 1 && broadcast >> o & 1 ? 0 : 1;
        c.in.shift[o] = o == 1 ? 0 : shift;
    }
    run_call(&c, true);
    c.is_inplace = can_be_inplace(r) && !(broadcast & 1);
    if (c.is_inplace)
        run_call(&c, true);
}

/* Each operand has an order of dims, gaps and directions of its own, and inputs broadcast along some of them. */
static void run_random_strides(const row *r, const kernel *k, int32_t rank, int64_t most) {
    call c = {.of = r, .kernel = k, .in = {.rank = rank}};
    for (int32_t d = 0; d < rank; d++)
        c.in.dims[d] = 1 + random_below(most);
    for (int32_t o = 0; o < OPERANDS; o++) {
        int32_t order[EDDY_CUDA_RANK_MAX];
        for (int32_t d = 0; d < rank; d++) {
            int32_t other = (int32_t)random_below(d + 1);
            order[d] = order[other];
            order[other] = d;
        }
        int64_t step = 1 + random_below(2);
        for (int32_t d = 0; d < rank; d++) {
            int64_t dim = c.in.dims[order[d]], sign = random_below(3) == 0 ? -1 : 1;
            bool is_one = o < OPERANDS - 1 && random_below(4) == 0;
            c.in.steps[o][order[d]] = is_one ? 0 : sign * step;
            step *= is_one ? 1 : dim + (random_below(4) == 0);
        }
        c.in.shift[o] = random_below(3);
    }
    run_call(&c, false);
    c.is_inplace = can_be_inplace(r);
    for (int32_t d = 0; d < rank; d++)
        c.is_inplace = c.is_inplace && c.in.steps[0][d] != 0;
    if (c.is_inplace)
        run_call(&c, false);
}

static void run_row(const row *r, const kernel *k) {
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 127, 521};
    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
        for (int64_t shift = 0; shift < 2; shift++)
            run_contiguous(r, k, counts[n], 0, shift);
    for (unsigned broadcast = 1; broadcast < 1u << k->inputs; broadcast++)
        for (int64_t shift = 0; shift < 2; shift++)
            run_contiguous(r, k, 131, broadcast, shift);
    static const int64_t most[EDDY_CUDA_RANK_MAX + 1] = {1, 300, 20, 7, 5, 4, 3, 2, 2,
                                                         2, 2,   2,  2, 2, 2, 2, 2};
    static const int32_t ranks[] = {0, 1, 2, 3, 5, EDDY_CUDA_RANK_MAX};
    for (size_t n = 0; n < sizeof(ranks) / sizeof(ranks[0]); n++)
        for (int again = 0; again < 2; again++)
            run_random_strides(r, k, ranks[n], most[ranks[n]]);
}

/* EDDY_TEST_CASE names an op, whose kernels alone are to be tried. */
Test(cuda_elementwise, kernels_have_the_bits_of_loops_in_every_layout, .timeout = 300) {
    const char *only = getenv("EDDY_TEST_CASE");
    for (size_t i = 0; i < ROWS; i++) {
        cr_assert_str_eq(rows[i].op, kernels[i].op);
        cr_assert_eq(rows[i].dtype, kernels[i].dtype, "%s", rows[i].op);
        cr_assert_eq(rows[i].of->operand_count, kernels[i].inputs, "%s", rows[i].op);
        cr_assert_eq(*kernels[i].dense_bytes, sizeof(eddy_cuda_dense), "%s", rows[i].op);
        cr_assert_eq(*kernels[i].strided_bytes, sizeof(eddy_cuda_strided), "%s", rows[i].op);
        if (!only || strcmp(only, rows[i].op) == 0)
            run_row(&rows[i], &kernels[i]);
    }
}

/* ---- the gate ---- */

/* Whether both kernels of add run behind the gate. A skipped one writes nothing, says so to the host and marks its own row. */
static bool runs(const eddy_cuda_gate *gate) {
    float a = 1, b = 2, out;
    eddy_cuda_dense dense = {.gate = *gate, .data = {&a, &b, &out}, .count = 1};
    eddy_cuda_strided strided = {.gate = *gate, .data = {&a, &b, &out}, .count = 1};
    const void *parameters[] = {&dense, &strided};
    eddy_grid_kernel *both[] = {eddy_add_f32_dense, eddy_add_f32_strided};
    int32_t ran = 0;
    for (int form = 0; form < 2; form++) {
        uint64_t *own = &gate->marks[gate->ticket % EDDY_CUDA_WORDS], before = *own;
        out = -1;
        word.status = EDDY_OK;
        launch(both[form], parameters[form]);
        ran += out == 3;
        cr_assert_eq(word.status, out == 3 ? EDDY_OK : EDDY_SKIPPED);
        cr_assert_eq(*own, out == 3 ? before : gate->ticket);
        cr_assert(out == 3 || out == -1);
        *own = before;
    }
    cr_assert(ran == 0 || ran == 2, "one of the forms is skipped, the other is not");
    return ran == 2;
}

Test(cuda_gate, a_marked_source_skips_the_launch) {
    const uint64_t tickets[] = {5, 1000, EDDY_CUDA_WORDS, 3 * EDDY_CUDA_WORDS + 1,
                                UINT64_C(1) << 40};
    for (size_t t = 0; t < sizeof(tickets) / sizeof(tickets[0]); t++)
        for (int sources = 1; sources <= EDDY_CUDA_SOURCES; sources++) {
            eddy_cuda_gate gate = {.ticket = tickets[t], .marks = marks, .word = &word};
            for (int k = 0; k < sources; k++)
                gate.behind[k] = (uint16_t)(k < 4 ? k + 1 : EDDY_CUDA_WORDS / 2 - k);
            memset(marks, 0, sizeof(marks));
            cr_assert(runs(&gate), "nothing is marked");
            for (int k = 0; k < sources && gate.behind[k] < gate.ticket; k++) {
                uint64_t source = gate.ticket - gate.behind[k];
                marks[source % EDDY_CUDA_WORDS] = source;
                cr_assert(!runs(&gate), "source %d of %d is marked", k, sources);
                if (source >= EDDY_CUDA_WORDS) {
                    marks[source % EDDY_CUDA_WORDS] = source - EDDY_CUDA_WORDS;
                    cr_assert(runs(&gate), "an older ticket of the row is marked");
                }
                marks[source % EDDY_CUDA_WORDS] = 0;
            }
        }
}

Test(cuda_gate, sources_behind_the_last_one_are_none) {
    eddy_cuda_gate gate = {.ticket = 1000, .marks = marks, .word = &word, .behind = {3, 0, 5}};
    memset(marks, 0, sizeof(marks));
    marks[995] = 995;
    cr_assert(runs(&gate));
    marks[997] = 997;
    cr_assert(!runs(&gate));
}

/* ---- division ---- */

static void check_division(uint32_t n, uint32_t divisor) {
    eddy_cuda_divisor by = eddy_cuda_divisor_of(divisor);
    cr_assert_eq(by.divisor, divisor);
    cr_assert_eq(eddy_cuda_quotient(n, by), n / divisor, "%u / %u: got %u", n, divisor,
                 eddy_cuda_quotient(n, by));
}

Test(cuda_divisor, divides_all_numbers_below_two_to_the_31) {
    const uint32_t most = INT32_MAX;
    for (int64_t round = 0; round < 200000; round++) {
        uint32_t divisor = round < 1000   ? (uint32_t)round + 1
                           : round < 1200 ? (1u << (round % 30 + 1)) + (uint32_t)(round % 3) - 1
                                          : (uint32_t)random_next() >> (1 + random_below(31));
        divisor = divisor < 1 ? 1 : divisor > most ? most : divisor;
        uint32_t multiple = most / divisor * divisor;
        const uint32_t numbers[] = {0,           1,
                                    divisor - 1, divisor < most ? divisor + 1 : divisor,
                                    divisor,     multiple - 1,
                                    multiple,    most,
                                    most - 1,    (uint32_t)random_next() >> 1};
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
            check_division(numbers[i], divisor);
    }
}
