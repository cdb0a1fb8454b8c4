/* Every loop of every instruction set against the oracle and against that of the lowest. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/scalar.h>
#include <functional/loops.h>
#include <functional/loops_list.h>
#include <functional/op_table.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/oracle.h>
#include <tests/functional/random.h>

#define LOOP(family, level, loop) &EDDY_ISA_TABLE(eddy_cpu_loops_##family, level).loop
#define LOOPS(family, loop)                                                                        \
    {                                                                                              \
        LOOP(family, PORTABLE, loop), LOOP(family, V2, loop), LOOP(family, V3, loop),              \
            LOOP(family, V4, loop)                                                                 \
    }

typedef struct row {
    const char *name, *op;
    const eddy_op *of;
    eddy_dtype dtype;
    int ulp; /* -1: the oracle does not know it (gradients in one loop: test_gradients.c compares them) */
    eddy_loop_fn *const *loops[EDDY_ISA_COUNT]; /* where the tables keep them, by instruction set */
} row;

#define OPERANDS 5     /* inputs and output at most */
#define COUNT_MAX 2051 /* two chunks of loops that have chunks, and a tail */
#define GUARD 128

typedef struct operand {
    eddy_dtype dtype;
    char *memory, *data;
    size_t bytes;
    int64_t stride; /* bytes */
} operand;

static void make(operand *o, eddy_dtype dtype, int64_t count, int64_t steps) {
    int64_t size = (int64_t)eddy_dtype_bytes(dtype),
            span = (count > 0 ? count - 1 : 0) * size * llabs(steps) + size;
    o->dtype = dtype;
    o->stride = steps * size;
    o->bytes = (size_t)span + 2 * GUARD;
    o->memory = aligned_alloc(64, (o->bytes + 63) / 64 * 64);
    memset(o->memory, 0xa5, o->bytes);
    /* One element off the alignment of vectors. */
    o->data = o->memory + GUARD + size + (steps < 0 ? span - size : 0) - (steps < 0 ? size : 0);
    for (int64_t i = 0; i < count; i++)
        random_element(dtype, o->data + i * o->stride);
}

/* Whether all bytes but the elements' are as in `before`. */
static bool guards_hold(const operand *o, const char *before, int64_t count) {
    char *elements = calloc(1, o->bytes);
    for (int64_t i = 0; i < count; i++)
        memset(elements + (o->data - o->memory) + i * o->stride, 1, eddy_dtype_bytes(o->dtype));
    bool hold = true;
    for (size_t i = 0; i < o->bytes; i++)
        hold = hold && (elements[i] || o->memory[i] == before[i]);
    free(elements);
    return hold;
}

typedef struct case_of {
    int64_t count;
    int64_t steps[OPERANDS]; /* elements between neighbours: 1, 0, 2, -1 */
    bool is_inplace;
} case_of;

static eddy_scalar random_scalar(eddy_dtype dtype, oracle_value *value) {
    char element[8];
    random_element(dtype, element);
    *value = oracle_load(dtype, element);
    if (dtype == EDDY_BOOL)
        return eddy_scalar_bool(value->integer != 0);
    /* A float loop also meets integers. */
    if (eddy_dtype_is_float(dtype) && random_below(4) == 0) {
        int64_t integer = random_below(9) - 4;
        value->real = (long double)integer;
        return eddy_scalar_int(integer);
    }
    if (!eddy_dtype_is_float(dtype))
        return eddy_scalar_int((int64_t)value->integer);
    /* 16-bit floats are computed in f32, and so the scalar is one. */
    value->real = dtype == EDDY_F64 ? value->real : (float)value->real;
    return eddy_scalar_float((double)value->real);
}

#define ATTRIBUTE_BYTES 64
#define VALUES (OPERANDS + 4) /* of one element: inputs and attributes */

/* An op's attribute struct, and its fields as the oracle takes them. */
typedef struct attributes {
    _Alignas(16) char bytes[ATTRIBUTE_BYTES];
    oracle_value values[VALUES];
    int32_t count;
} attributes;

/* Numbers: the default or a power of two, which adds no rounding of its own. */
static double random_number(const eddy_op_attribute *attribute) {
    static const double powers[] = {0.5, 2, 4};
    int64_t pick = random_below(6);
    return pick < 3 ? powers[pick] : attribute->default_value.value.floating;
}

static void random_attributes(const eddy_op *op, eddy_dtype dtype, attributes *a) {
    memset(a, 0, sizeof(*a));
    cr_assert_leq(op->attribute_bytes, ATTRIBUTE_BYTES, "%s", op->name);
    a->count = op->attribute_count;
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        void *place = a->bytes + attribute->offset;
        if (attribute->type == EDDY_ATTRIBUTE_SCALAR) {
            eddy_scalar scalar = random_scalar(dtype, &a->values[i]);
            memcpy(place, &scalar, sizeof(scalar));
        } else if (attribute->type == EDDY_ATTRIBUTE_FLOAT) {
            double number = random_number(attribute);
            memcpy(place, &number, sizeof(number));
            a->values[i].real = dtype == EDDY_F64 ? number : (double)(float)number;
        } else {
            cr_assert_eq(attribute->type, EDDY_ATTRIBUTE_CHOICE, "%s.%s", op->name,
                         attribute->name);
            int32_t choice = (int32_t)random_below(2);
            memcpy(place, &choice, sizeof(choice));
            a->values[i].real = choice;
        }
    }
}

/* Products on the way to a sum, or of three: their bounds hold where nothing overflows or is subnormal (the slope by which a
 * gradient is multiplied neither). */
static bool is_within_range(const oracle_value *values, oracle_value want) {
    long double size = fmaxl(fabsl(want.real), want.scale);
    for (int i = 0; i < VALUES; i++)
        if (values[i].real != 0 &&
            !(fabsl(values[i].real) > 0x1p-40L && fabsl(values[i].real) < 0x1p30L))
            return false;
    return isfinite(size) && size > 0x1p-100L * fmaxl(1, fabsl(values[0].real));
}

static void check_elements(const row *r, const case_of *c, const operand *inputs,
                           char *const *snapshots, int32_t input_count, const attributes *a,
                           const operand *out, const char *isa) {
    oracle_function *oracle = oracle_of(r->op);
    cr_assert(oracle || r->ulp < 0, "there is no oracle of %s", r->op);
    for (int64_t i = 0; i < c->count && r->ulp >= 0; i++) {
        oracle_value values[VALUES] = {0}, want = {0};
        for (int32_t k = 0; k < input_count; k++)
            values[k] =
                oracle_load(inputs[k].dtype, snapshots[k] + (inputs[k].data - inputs[k].memory) +
                                                 i * inputs[k].stride);
        memcpy(values + input_count, a->values, (size_t)a->count * sizeof(*values));
        cr_assert(oracle(values, r->dtype, &want), "the oracle does not know %s", r->op);
        double distance = oracle_distance(out->dtype, want, out->data + i * out->stride);
        /* A rounding of the exact value is half a unit at most; products of roundings have their bound on top
         * of it. */
        double bound = r->ulp == 0                                                   ? 0.5
                       : r->ulp == 1 && r->dtype != EDDY_F32 && r->dtype != EDDY_F64 ? 1.0
                                                                                     : r->ulp;
        bool is_product = r->ulp > 0 && (strstr(r->op, "_backward") || want.is_sum);
        if (is_product && !is_within_range(values, want))
            continue;
        cr_assert_leq(distance, bound,
                      "%s on %s: [%lld] of %lld, a %Lg b %Lg c %Lg d %Lg: got %g, want %Lg, %g "
                      "ulp, seed %llu",
                      r->name, isa, (long long)i, (long long)c->count, values[0].real,
                      values[1].real, values[2].real, values[3].real,
                      eddy_dtype_load_f64(out->dtype, out->data + i * out->stride), want.real,
                      distance, (unsigned long long)random_seed());
    }
}

/* The same bits, but for which NaN it is: that depends on the order of operands, which compilers may change. */
static bool same_elements(const operand *o, const char *one, const char *other, int64_t count) {
    int64_t at = o->data - o->memory;
    for (int64_t i = 0; i < count; i++, at += o->stride)
        if (memcmp(one + at, other + at, eddy_dtype_bytes(o->dtype)) != 0 &&
            !(isnan(eddy_dtype_load_f64(o->dtype, one + at)) &&
              isnan(eddy_dtype_load_f64(o->dtype, other + at))))
            return false;
    return true;
}

static void run_case(const row *r, const eddy_op *op, const case_of *c) {
    operand inputs[OPERANDS], out;
    char *snapshots[OPERANDS], *data[OPERANDS];
    int64_t strides[OPERANDS];
    int32_t input_count = op->operand_count;
    for (int32_t k = 0; k < input_count; k++) {
        make(&inputs[k], op->operands[k].is_bool ? EDDY_BOOL : r->dtype, c->count, c->steps[k]);
        snapshots[k] = malloc(inputs[k].bytes);
        memcpy(snapshots[k], inputs[k].memory, inputs[k].bytes);
        data[k] = inputs[k].data;
        strides[k] = inputs[k].stride;
    }
    attributes a;
    random_attributes(op, r->dtype, &a);
    make(&out, op->result == EDDY_RESULT_BOOL ? EDDY_BOOL : r->dtype, c->count,
         c->steps[OPERANDS - 1]);
    int32_t target = c->is_inplace ? 0 : -1;
    char *before = malloc(out.bytes), *first = malloc(target == 0 ? inputs[0].bytes : out.bytes);
    memcpy(before, out.memory, out.bytes);
    const eddy_isa lowest = eddy_isa_served_by(EDDY_ISA_PORTABLE);
    for (eddy_isa isa = lowest; isa <= eddy_isa_machine(); isa++) {
        if (eddy_isa_served_by(isa) != isa)
            continue;
        operand *written = target == 0 ? &inputs[0] : &out;
        memcpy(written->memory, target == 0 ? snapshots[0] : before, written->bytes);
        data[input_count] = written->data;
        strides[input_count] = written->stride;
        (*r->loops[isa])(data, strides, c->count, op->attribute_count > 0 ? a.bytes : NULL);
        cr_assert(guards_hold(written, target == 0 ? snapshots[0] : before, c->count),
                  "%s on %s writes beside its target, seed %llu", r->name, eddy_isa_name(isa),
                  (unsigned long long)random_seed());
        for (int32_t k = target + 1; k < input_count; k++)
            cr_assert_eq(memcmp(inputs[k].memory, snapshots[k], inputs[k].bytes), 0,
                         "%s changes an input", r->name);
        if (isa == lowest) {
            check_elements(r, c, inputs, snapshots, input_count, &a, written, eddy_isa_name(isa));
            memcpy(first, written->memory, written->bytes);
        } else
            cr_assert(same_elements(written, first, written->memory, c->count),
                      "%s: %s and %s differ in bits, seed %llu", r->name, eddy_isa_name(isa),
                      eddy_isa_name(lowest), (unsigned long long)random_seed());
    }
    for (int32_t k = 0; k < input_count; k++) {
        free(inputs[k].memory);
        free(snapshots[k]);
    }
    free(out.memory);
    free(before);
    free(first);
}

static void run_row(const row *r) {
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 127, 257, COUNT_MAX};
    static const int64_t layouts[][OPERANDS] = {
        {1, 1, 1, 1, 1}, {0, 1, 1, 1, 1}, {1, 0, 1, 1, 1}, {1, 1, 0, 1, 1},   {0, 0, 0, 0, 1},
        {2, 1, 1, 1, 1}, {1, 1, 1, 1, 2}, {2, 3, 2, 0, 3}, {-1, 1, -1, 2, 1}, {-2, 0, 1, 1, -1}};
    const eddy_op *op = r->of;
    for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++)
        for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
            case_of c = {.count = counts[n]};
            memcpy(c.steps, layouts[l], sizeof(c.steps));
            run_case(r, op, &c);
            c.is_inplace = true;
            if (op->result == EDDY_RESULT_COMPUTE && !op->operands[0].is_bool && c.steps[0] != 0)
                run_case(r, op, &c);
        }
}

#define ROW(family_, loop_, op_, dtype_, ulp_)                                                     \
    {.name = #loop_,                                                                               \
     .op = #op_,                                                                                   \
     .of = &eddy_op_##op_,                                                                         \
     .dtype = EDDY_##dtype_,                                                                       \
     .ulp = ulp_,                                                                                  \
     .loops = LOOPS(family_, loop_)},
static const row rows[] = {EDDY_LOOPS_LIST(ROW)};
#undef ROW

/* EDDY_TEST_CASE names an op, whose loops alone are to be tried. */
static bool is_asked(const row *r) {
    const char *only = getenv("EDDY_TEST_CASE");
    return !only || strcmp(only, r->op) == 0;
}

Test(loops, each_gives_what_the_oracle_does_with_the_same_bits_on_every_instruction_set) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_asked(&rows[i]))
            run_row(&rows[i]);
}

/* Criterion gives each of these a process of its own, in which nothing is settled yet. */
static void check_choice(eddy_isa isa) {
    if (isa > eddy_isa_machine())
        cr_skip_test("this machine has no %s", eddy_isa_name(isa));
    eddy_isa_choose(isa);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const eddy_kernel *kernel = rows[i].of->kernels[rows[i].dtype];
        cr_assert(eddy_kernel_loop(kernel) == *rows[i].loops[isa], "%s on %s", rows[i].name,
                  eddy_isa_name(isa));
    }
}

Test(loops, kernels_choose_those_of_portable) {
    check_choice(EDDY_ISA_PORTABLE);
}

Test(loops, kernels_choose_those_of_v2) {
    check_choice(EDDY_ISA_V2);
}

Test(loops, kernels_choose_those_of_v3) {
    check_choice(EDDY_ISA_V3);
}

Test(loops, kernels_choose_those_of_v4) {
    check_choice(EDDY_ISA_V4);
}

/* Floats of everyday size, for which words may have a quick form. */
static void make_tame(operand *o, int64_t count) {
    if (!eddy_dtype_is_float(o->dtype))
        return;
    for (int64_t i = 0; i < count; i++)
        eddy_dtype_store_f64(o->dtype, o->data + i * o->stride,
                             (double)random_below(4001) / 256 - 7.5);
}

/* Element by element and all at once: how many go through the vector and how many through the rest must not
 * matter. */
static void check_bits_of_single_elements(bool is_tame, int64_t count) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *r = &rows[i];
        if (!is_asked(r))
            continue;
        const eddy_op *op = r->of;
        operand operands[OPERANDS], single;
        char *data[OPERANDS];
        int64_t strides[OPERANDS];
        int32_t inputs = op->operand_count;
        for (int32_t k = 0; k <= inputs; k++) {
            eddy_dtype dtype = k == inputs ? (op->result == EDDY_RESULT_BOOL ? EDDY_BOOL : r->dtype)
                               : op->operands[k].is_bool ? EDDY_BOOL
                                                         : r->dtype;
            make(&operands[k], dtype, count, 1);
            if (is_tame)
                make_tame(&operands[k], count);
            data[k] = operands[k].data;
            strides[k] = operands[k].stride;
        }
        make(&single, operands[inputs].dtype, count, 1);
        attributes a;
        random_attributes(op, r->dtype, &a);
        for (eddy_isa isa = EDDY_ISA_PORTABLE; isa <= eddy_isa_machine(); isa++) {
            if (eddy_isa_served_by(isa) != isa)
                continue;
            (*r->loops[isa])(data, strides, count, a.bytes);
            for (int64_t e = 0; e < count; e++) {
                char *one[OPERANDS];
                for (int32_t k = 0; k < inputs; k++)
                    one[k] = data[k] + e * strides[k];
                one[inputs] = single.data + e * single.stride;
                (*r->loops[isa])(one, strides, 1, a.bytes);
            }
            cr_assert(same_elements(&single, operands[inputs].memory, single.memory, count),
                      "%s on %s, seed %llu", r->name, eddy_isa_name(isa),
                      (unsigned long long)random_seed());
        }
        for (int32_t k = 0; k <= inputs; k++)
            free(operands[k].memory);
        free(single.memory);
    }
}

Test(loops, bits_do_not_depend_on_the_number_of_elements) {
    check_bits_of_single_elements(false, 133);
}

/* Chunks of which all elements have quick forms, while above few have. */
Test(loops, bits_of_everyday_numbers_do_not_depend_on_the_number_of_elements) {
    check_bits_of_single_elements(true, 600);
}
