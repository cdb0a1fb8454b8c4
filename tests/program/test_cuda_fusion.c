/* Programs whose elementwise calls are one kernel on a CUDA device, on the fake driver and the fake compiler (tests/fake_cuda): the bits, and the errors, of calls one by one. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <eddy/eddy.h>
#include <program/fusions.h>
#include <program/gradient.h>
#include <program/program.h>
#include <stdlib.h>
#include <streams/cuda/nvrtc.h>
#include <string.h>
#include <tests/program/outcome.h>

#define THERE EDDY_CUDA(0)

/* Nothing is kept on disk, so that each test compiles its own. */
static void begin(void) {
    if (!dlopen(EDDY_CUDA_NVRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL))
        cr_skip_test("there is no " EDDY_CUDA_NVRTC_LIBRARY);
    setenv("EDDY_CACHE_DIR", "none", 1);
}

static void end(eddy_scope *scope, eddy_program **program) {
    eddy_program_release(program);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_tensor *numbers(eddy_shape shape, eddy_dtype dtype, int64_t seed) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    float *elements = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        elements[i] = (float)((i * 37 + seed * 11) % 101 - 50) / 16.0f;
    eddy_tensor *here =
        eddy_from_data(elements, shape, EDDY_F32, EDDY_OPTIONS(from_data, .device = EDDY_CPU));
    free(elements);
    return eddy_to_device(eddy_cast(here, dtype), THERE);
}

static eddy_tensor *floats(eddy_shape shape, int64_t seed) {
    return numbers(shape, EDDY_F32, seed);
}

static const eddy_fusions *fusions_of(const eddy_program *program) {
    return &program->executable->fusions;
}

/* So many fusions, whose kernels are there. */
static void must_have_kernels(eddy_program *program, uint32_t count) {
    must(eddy_program_prepare(program, NULL, 0));
    cr_assert_eq(fusions_of(program)->count, count, "%u fusions", fusions_of(program)->count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_not_null(eddy_made_kernel_ready(fusions_of(program)->items[i].kernel));
}

/* ---- what is one kernel ---- */

static eddy_tensor *chain(eddy_tensor *x, eddy_tensor *bias) {
    return eddy_mul_s(eddy_relu(eddy_add(x, bias)), EDDY_S(0.37));
}

static eddy_program *record_chain(eddy_tensor *x, eddy_tensor *bias) {
    must(eddy_record_begin(NULL));
    eddy_tensor *y = chain(x, bias);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"bias", bias, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    return program;
}

/* The first kernel of a process is there at once (streams/made_kernel.h); later ones are not. */
static void compile_first(void) {
    eddy_tensor *x = floats(EDDY_SHAPE(3), 1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_neg(eddy_abs(x));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_not_null(eddy_made_kernel_ready(fusions_of(program)->items[0].kernel));
    eddy_program_release(&program);
}

/* Contiguous or not, aligned or not, one element for all or rows of them. */
Test(cuda_fusion, a_chain_is_one_kernel_in_any_layout, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *wide = floats(EDDY_SHAPE(9, 40), 1), *all = floats(EDDY_SHAPE(1001), 2),
                *deep = floats(EDDY_SHAPE(2, 3, 2, 2, 5), 3);
    eddy_tensor *xs[] = {all,
                         eddy_slice(all, 0, 3, 1000, 1),
                         wide,
                         eddy_transpose(wide, 0, 1),
                         eddy_permute(deep, EDDY_AXES(3, 1, 4, 0, 2)),
                         floats(EDDY_SHAPE(), 4)};
    eddy_tensor *biases[] = {floats(EDDY_SHAPE(), 5),           floats(EDDY_SHAPE(997), 6),
                             floats(EDDY_SHAPE(9, 1), 7),       floats(EDDY_SHAPE(9), 8),
                             floats(EDDY_SHAPE(3, 1, 1, 2), 9), floats(EDDY_SHAPE(), 10)};
    for (size_t i = 0; i < sizeof(xs) / sizeof(*xs); i++) {
        eddy_program *program = record_chain(xs[i], biases[i]);
        eddy_tensor *result;
        must_have_kernels(program, 1);
        cr_assert_eq(fusions_of(program)->items[0].count, 3);
        must(eddy_program_run(program, EDDY_LIST(xs[i], biases[i]), &result));
        must_have_same_bits(chain(xs[i], biases[i]), result, "a chain");
        eddy_program_release(&program);
    }
    cr_assert_eq(eddy_made_kernels_counted().compiled, 1);
    end(scope, &(eddy_program *){NULL});
}

/* Into the midst of what is larger, where vectors fit and where they do not. */
static void write_part(eddy_tensor *x, eddy_tensor *part) {
    must(eddy_mul_s_into(eddy_relu(eddy_neg(x)), part, EDDY_S(0.37)));
}

static eddy_tensor *part_of(eddy_tensor *all, int64_t first) {
    return eddy_rank_of(all) == 1 ? eddy_slice(all, 0, first, first + 50, 1)
                                  : eddy_slice(eddy_select(all, 1, 1), 0, first, first + 50, 1);
}

static void try_part(eddy_shape shape, int64_t first) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(50), 1), *all = floats(shape, 3),
                *expected = floats(shape, 3);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    write_part(x, part_of(all, first));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"all", all, EDDY_ROLE_STATE}));
    cr_assert_not_null(program);
    must_have_kernels(program, 1);
    must(eddy_copy_into(floats(shape, 3), all)); /* which noted calls have lost */
    must(eddy_program_run(program, EDDY_LIST(x), NULL));
    write_part(x, part_of(expected, first));
    must_have_same_bits(expected, all, "a part");
    end(scope, &program);
}

Test(cuda_fusion, writes_its_elements_alone, .init = begin) {
    for (int64_t first = 0; first < 6; first++) {
        try_part(EDDY_SHAPE(60), first);
        try_part(EDDY_SHAPE(60, 3), first);
    }
    cr_assert_eq(eddy_made_kernels_counted().compiled, 1);
}

/* Before there is a kernel the calls run, and nobody waits. */
Test(cuda_fusion, calls_run_until_there_is_a_kernel, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    compile_first();
    eddy_tensor *x = floats(EDDY_SHAPE(60), 1), *bias = floats(EDDY_SHAPE(60), 2), *result;
    eddy_program *program = record_chain(x, bias);
    bool was_ready = false;
    for (int run = 0; run < 50 || !was_ready; run++) {
        was_ready = eddy_made_kernel_ready(fusions_of(program)->items[0].kernel) != NULL;
        eddy_tensor *given = floats(EDDY_SHAPE(60), run);
        must(eddy_program_run(program, EDDY_LIST(given, bias), &result));
        must_have_same_bits(chain(given, bias), result, "a chain");
        eddy_release(&given);
        eddy_release(&result);
    }
    end(scope, &program);
}

static void begin_on_one_thread(void) {
    begin();
    setenv("EDDY_ONE_THREAD", "1", 1);
}

/* Then it is made when the program is. */
Test(cuda_fusion, needs_no_thread, .init = begin_on_one_thread) {
    eddy_scope *scope = eddy_scope_begin();
    compile_first();
    eddy_tensor *x = floats(EDDY_SHAPE(9), 1), *bias = floats(EDDY_SHAPE(9), 2), *result;
    eddy_program *program = record_chain(x, bias);
    cr_assert_not_null(eddy_made_kernel_ready(fusions_of(program)->items[0].kernel));
    must(eddy_program_run(program, EDDY_LIST(x, bias), &result));
    must_have_same_bits(chain(x, bias), result, "a chain");
    end(scope, &program);
}

/* Some results are used elsewhere; two are written where something was before. */
static eddy_tensor *write_several(eddy_tensor *x, eddy_tensor *state, eddy_tensor **rounded) {
    eddy_tensor *y = eddy_mul(eddy_tanh(x), state);
    *rounded = eddy_cast(y, EDDY_BF16);
    must(eddy_add_into(state, y, state));
    return y;
}

Test(cuda_fusion, writes_several_results_and_in_place, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(5, 12), 1), *there = floats(EDDY_SHAPE(5, 12), 2),
                *other = floats(EDDY_SHAPE(5, 12), 2), *rounded;
    must(eddy_record_begin(NULL));
    eddy_tensor *y = write_several(x, there, &rounded);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"state", there, EDDY_ROLE_STATE},
                      {"y", y, EDDY_ROLE_OUTPUT}, {"rounded", rounded, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must_have_kernels(program, 1);
    cr_assert_eq(fusions_of(program)->items[0].count, 4);
    write_several(x, other, &rounded);
    for (int run = 0; run < 3; run++) {
        eddy_tensor *given = floats(EDDY_SHAPE(5, 12), 7 + run), *results[2];
        must(eddy_program_run(program, EDDY_LIST(given), results));
        y = write_several(given, other, &rounded);
        must_have_same_bits(y, results[0], "y");
        must_have_same_bits(rounded, results[1], "rounded");
        must_have_same_bits(other, there, "state");
    }
    end(scope, &program);
}

/* ---- numbers of runs ---- */

static eddy_status scaled(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] =
        eddy_add_s(eddy_mul_s(eddy_exp(call->inputs.items[0]), call->scalars[0]), call->scalars[1]);
    return call->outputs[0] ? EDDY_OK : EDDY_UNSUPPORTED;
}

/* One text serves, whatever they are. */
Test(cuda_fusion, takes_numbers_that_change, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(scaled, NULL, 1, NULL);
    for (int i = 0; i < 8 || eddy_made_kernels_counted().compiled == 0; i++) {
        eddy_tensor *x = floats(EDDY_SHAPE(7), i), *y;
        eddy_scalar a = EDDY_S(0.25 + i), b = EDDY_S((double)i / 3);
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(a, b), &y));
        must_have_same_bits(eddy_add_s(eddy_mul_s(eddy_exp(x), a), b), y, "numbers");
        eddy_release(&x);
        eddy_release(&y);
    }
    eddy_tensor *x = floats(EDDY_SHAPE(7), 99), *y;
    must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(3.0), EDDY_S(-1.0)), &y));
    must_have_same_bits(eddy_add_s(eddy_mul_s(eddy_exp(x), EDDY_S(3.0)), EDDY_S(-1.0)), y,
                        "numbers");
    cr_assert_eq(eddy_made_kernels_counted().compiled, 1);
    eddy_recorded_release(&recorded);
    end(scope, &(eddy_program *){NULL});
}

/* ---- errors ---- */

/* A tensor with an error that has not come yet. */
static eddy_tensor *failing(eddy_tensor *table) {
    int64_t bad[] = {9};
    return eddy_index_select(
        table,
        eddy_to_device(eddy_from_data(bad, EDDY_SHAPE(1), EDDY_I64,
                                      EDDY_OPTIONS(from_data, .device = EDDY_CPU)),
                       THERE),
        0);
}

static void must_have_same_error(eddy_tensor *a, eddy_tensor *b) {
    eddy_error one = {0}, other = {0};
    eddy_status status = eddy_error_of(a, EDDY_FOREVER, &one);
    cr_assert_neq(status, EDDY_OK);
    cr_assert_eq(eddy_error_of(b, EDDY_FOREVER, &other), status);
    cr_assert_str_eq(one.message, other.message);
    eddy_error_take(NULL);
}

/* ---- what is none ---- */

/* Passes may be named, and fuse is one. */
Test(cuda_fusion, is_made_where_the_pass_runs, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(8), 1);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    eddy_tensor *y = eddy_neg(eddy_relu(x));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(fusions_of(program)->count, 0);
    end(scope, &program);
}

/* Two results of different tensors: an error in one of these is none of the other. */
Test(cuda_fusion, results_of_other_tensors_are_apart, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(8), 1), *z = floats(EDDY_SHAPE(8), 2);
    must(eddy_record_begin(NULL));
    eddy_tensor *a = eddy_relu(x), *b = eddy_mul(x, z);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT},
                                      {"a", a, EDDY_ROLE_OUTPUT}, {"b", b, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(fusions_of(program)->count, 0);
    end(scope, &program);
}

/* Twice with the same tensors: all of it happens, or nothing. */
static void step_twice(eddy_tensor *x, eddy_tensor *state) {
    must(eddy_add_into(state, x, state));
    must(eddy_mul_into(state, x, state));
}

Test(cuda_fusion, may_write_twice_what_stays, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(1, 8), 1), *state = floats(EDDY_SHAPE(1, 8), 3),
                *other = floats(EDDY_SHAPE(1, 8), 3);
    must(eddy_record_begin(NULL));
    step_twice(x, state);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE}));
    cr_assert_not_null(program);
    must_have_kernels(program, 1);
    step_twice(x, other);
    eddy_tensor *bad = failing(x);
    must(eddy_program_run(program, EDDY_LIST(bad), NULL));
    step_twice(bad, other);
    must_have_same_error(other, state);
    must(eddy_recover(EDDY_LIST(state, other)));
    must(eddy_program_run(program, EDDY_LIST(x), NULL));
    step_twice(x, other);
    must_have_same_bits(other, state, "twice");
    end(scope, &program);
}

/* What is there afterwards, and is written twice, would be left otherwise by an error in between. */
Test(cuda_fusion, what_stays_is_written_at_once, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(8), 1), *z = floats(EDDY_SHAPE(8), 2),
                *state = floats(EDDY_SHAPE(8), 3);
    must(eddy_record_begin(NULL));
    must(eddy_add_into(state, x, state));
    must(eddy_mul_into(state, z, state));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE}));
    cr_assert_not_null(program);
    cr_assert_eq(fusions_of(program)->count, 0);
    end(scope, &program);
}

/* What one call writes and another reads elsewhere would need another thread's result. */
Test(cuda_fusion, results_are_seen_in_their_places, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(6, 6), 1), *result;
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_relu(x), *z = eddy_sub(eddy_transpose(y, 0, 1), y);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(fusions_of(program)->count, 0);
    must(eddy_program_run(program, EDDY_LIST(x), &result));
    must_have_same_bits(z, result, "transposed");
    end(scope, &program);
}

/* ---- what errors leave ---- */

static eddy_tensor *relu_and_add(eddy_tensor *x, eddy_tensor *state) {
    eddy_tensor *y = eddy_relu(eddy_mul(x, state));
    must(eddy_add_into(state, y, state));
    return y;
}

Test(cuda_fusion, passes_errors_on_and_leaves_what_was_there, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(1, 4), 1), *state = floats(EDDY_SHAPE(1, 4), 2),
                *other = floats(EDDY_SHAPE(1, 4), 2), *result;
    must(eddy_record_begin(NULL));
    eddy_tensor *y = relu_and_add(x, state);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    relu_and_add(x, other);
    must_have_kernels(program, 1);
    eddy_tensor *bad = failing(x);
    must(eddy_program_run(program, EDDY_LIST(bad), &result));
    must_have_same_error(relu_and_add(bad, other), result);
    must_have_same_error(other, state);
    must(eddy_recover(EDDY_LIST(state, other)));
    must_have_same_bits(other, state, "what was there");
    must(eddy_program_run(program, EDDY_LIST(x), &result));
    must_have_same_bits(relu_and_add(x, other), result, "after an error");
    must_have_same_bits(other, state, "after an error");
    end(scope, &program);
}

/* A target that is written whole is good again. */
Test(cuda_fusion, heals_what_it_writes_whole, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(1, 4), 1), *target = floats(EDDY_SHAPE(1, 4), 2);
    must(eddy_record_begin(NULL));
    must(eddy_add_into(eddy_relu(x), x, target));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"target", target, EDDY_ROLE_STATE}));
    cr_assert_not_null(program);
    must_have_kernels(program, 1);
    must(eddy_copy_into(failing(x), target));
    cr_assert_neq(eddy_error_of(target, EDDY_FOREVER, NULL), EDDY_OK);
    eddy_error_take(NULL);
    must(eddy_program_run(program, EDDY_LIST(x), NULL));
    must_have_same_bits(eddy_add(eddy_relu(x), x), target, "healed");
    end(scope, &program);
}

/* The result alone takes memory; without it the last of the calls is to blame. */
Test(cuda_fusion, may_lack_memory, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x =
                    eddy_zeros(EDDY_SHAPE(1 << 20), EDDY_F32, EDDY_OPTIONS(zeros, .device = THERE)),
                *result;
    eddy_error error = {0};
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *y = eddy_tanh(eddy_neg(x));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must_have_kernels(program, 1);
    must(eddy_device_memory_limit_set(THERE, 6 << 20));
    must(eddy_program_run(program, EDDY_LIST(x), &result));
    cr_assert_eq(eddy_error_of(result, EDDY_FOREVER, &error), EDDY_OUT_OF_MEMORY, "%s",
                 error.message);
    /* In rounds a run takes all of its memory first. */
    cr_assert_str_eq(error.op, getenv("EDDY_CUDA_GRAPHS") ? "program" : "tanh");
    eddy_error_take(NULL);
    must(eddy_device_memory_limit_set(THERE, 0));
    must(eddy_program_run(program, EDDY_LIST(x), &result));
    must(eddy_error_of(result, EDDY_FOREVER, NULL));
    must_have_same_bits(eddy_tanh(eddy_neg(x)), result, "with memory");
    end(scope, &program);
}

/* Whatever has no memory while a kernel is made: there is no program, or its calls run. */
Test(cuda_fusion, is_not_needed, .init = begin_on_one_thread) {
    eddy_tensor *(*const ops[])(eddy_tensor *) = {eddy_relu, eddy_neg, eddy_tanh,
                                                  eddy_exp,  eddy_abs, eddy_sigmoid};
    int injected = 0, refused = 0;
    for (int n = 0; n < 6; n++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = floats(EDDY_SHAPE(9), 1), *result;
        must(eddy_record_begin(NULL));
        eddy_tensor *y = eddy_add_s(ops[n](x), EDDY_S(0.1));
        eddy_memory_fail_at(EDDY_MEMORY_CACHE, n, 1);
        eddy_program *program =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        injected += (int)eddy_memory_failures_injected();
        eddy_memory_fail_at(EDDY_MEMORY_CACHE, 0, 0);
        if (program) {
            must(eddy_program_run(program, EDDY_LIST(x), &result));
            must_have_same_bits(y, result, "without memory");
        } else {
            cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_MEMORY);
            refused++;
        }
        end(scope, &program);
    }
    cr_assert_geq(injected, 4);
    cr_assert_leq(refused, 1);
    cr_assert_geq(eddy_made_kernels_counted().failed, 3);
}

/* ---- within others ---- */

/* A run whose calls are recorded in their turn. */
Test(cuda_fusion, is_a_part_of_another_recording, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(3, 4), 1), *bias = floats(EDDY_SHAPE(4), 2), *y, *result;
    eddy_program *inner = record_chain(x, bias), *outer;
    must_have_kernels(inner, 1);
    must(eddy_record_begin(NULL));
    must(eddy_program_run(inner, EDDY_LIST(x, bias), &y));
    eddy_tensor *z = eddy_exp(y);
    outer = eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(outer);
    must_have_kernels(outer, 1);
    cr_assert_eq(fusions_of(outer)->items[0].count, 4);
    eddy_tensor *given = floats(EDDY_SHAPE(3, 4), 5);
    must(eddy_program_run(outer, EDDY_LIST(given), &result));
    must_have_same_bits(eddy_exp(chain(given, bias)), result, "within");
    eddy_program_release(&inner);
    end(scope, &outer);
}

static eddy_tensor *gate(eddy_tensor *x, eddy_tensor *z) {
    return eddy_mul(eddy_tanh(eddy_mul_s(x, EDDY_S(0.7))), eddy_sigmoid(z));
}

/* Forwards and backwards, with what is kept in between. */
Test(cuda_fusion, gradients_go_back_through_it, .init = begin) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = floats(EDDY_SHAPE(4, 6), 1), *z = floats(EDDY_SHAPE(4, 6), 2), *y;
    must(eddy_requires_grad_set(x, true));
    must(eddy_record_begin(NULL));
    y = gate(x, z);
    eddy_program *program = eddy_record_end_with_grad(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must_have_kernels(program, 1);
    cr_assert_geq(program->gradient->forward->executable->fusions.count, 1);
    cr_assert_geq(program->gradient->ways->items[0].program->executable->fusions.count, 1);
    for (int run = 0; run < 2; run++) {
        eddy_tensor *sides[2];
        for (int side = 0; side < 2; side++) {
            sides[side] = floats(EDDY_SHAPE(4, 6), 7 + run);
            must(eddy_requires_grad_set(sides[side], true));
            if (side == 0)
                y = gate(sides[side], z);
            else
                must(eddy_program_run(program, EDDY_LIST(sides[side], z), &y));
            must(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)));
        }
        must_have_same_bits(eddy_grad_of(sides[0]), eddy_grad_of(sides[1]), "gradients");
    }
    end(scope, &program);
}

/* ---- random ones ---- */

#define INPUTS 4
#define OPS_MOST 9

typedef struct pool {
    eddy_tensor *items[INPUTS + 3 * OPS_MOST];
    int count;
    uint64_t state;
} pool;

static uint32_t draw(pool *p, uint32_t below) {
    p->state = p->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(p->state >> 33) % below;
}

static bool is_float(eddy_tensor *x) {
    eddy_dtype dtype = eddy_dtype_of(x);
    return dtype == EDDY_F32 || dtype == EDDY_F64 || dtype == EDDY_F16 || dtype == EDDY_BF16;
}

/* Results stay within a few units, so that none is a NaN, whose payload is anybody's. */
static eddy_tensor *bounded(eddy_tensor *x) {
    return eddy_dtype_of(x) == EDDY_BOOL ? x : eddy_clamp(x, EDDY_S(0), EDDY_S(3));
}

static eddy_tensor *unary(pool *p, eddy_tensor *x) {
    switch (draw(p, 9)) {
    case 0:
        return eddy_tanh(x);
    case 1:
        return bounded(eddy_exp(bounded(x)));
    case 2:
        return eddy_sin(x);
    case 3:
        return eddy_gelu(eddy_cast(x, EDDY_F32), NULL);
    case 4:
        return eddy_sigmoid(x);
    case 5:
        return eddy_logical_not(x);
    case 6:
        return is_float(x) ? eddy_pow_s(eddy_abs(x), EDDY_S(0.75)) : eddy_cast(x, EDDY_I16);
    case 7:
        return eddy_dtype_of(x) == EDDY_BOOL ? x : bounded(eddy_mul_s(x, EDDY_S(2)));
    default: {
        static const eddy_dtype to[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16, EDDY_I8,
                                        EDDY_U8,  EDDY_I32, EDDY_I64, EDDY_BOOL};
        return eddy_cast(bounded(x), to[draw(p, sizeof(to) / sizeof(*to))]);
    }
    }
}

static eddy_tensor *binary(pool *p, eddy_tensor *x, eddy_tensor *y) {
    switch (draw(p, 5)) {
    case 0:
        return bounded(eddy_add(x, y));
    case 1:
        return bounded(eddy_mul(x, y));
    case 2:
        return eddy_maximum(x, y);
    case 3:
        return eddy_lt(x, y);
    default:
        return eddy_where(eddy_lt(x, y), y, x);
    }
}

/* The same calls for the same seed. */
static void compute(eddy_tensor *const *inputs, uint64_t seed, eddy_tensor **results) {
    pool p = {.count = INPUTS, .state = seed};
    memcpy(p.items, inputs, INPUTS * sizeof(*inputs));
    int ops = 4 + (int)draw(&p, OPS_MOST - 4);
    for (int i = 0; i < ops; i++) {
        eddy_tensor *x = p.items[draw(&p, (uint32_t)p.count)], *last = p.items[p.count - 1];
        p.items[p.count] = draw(&p, 2) ? unary(&p, last) : binary(&p, last, x);
        cr_assert_not_null(p.items[p.count]);
        p.count++;
    }
    results[0] = p.items[p.count - 1];
    results[1] = p.items[p.count - 2];
}

/* Inputs of one joint shape, in several layouts. */
static void make_inputs(pool *p, int64_t seed, eddy_tensor **inputs) {
    static const eddy_dtype dtypes[] = {EDDY_F32,  EDDY_F32, EDDY_F64, EDDY_F16,
                                        EDDY_BF16, EDDY_I32, EDDY_U8,  EDDY_BOOL};
    bool is_dense = draw(p, 2);
    for (int i = 0; i < INPUTS; i++) {
        eddy_dtype dtype = dtypes[draw(p, sizeof(dtypes) / sizeof(*dtypes))];
        uint32_t layout = is_dense ? 0 : draw(p, 4);
        inputs[i] = layout == 1 ? eddy_transpose(numbers(EDDY_SHAPE(13, 7), dtype, seed + i), 0, 1)
                    : layout == 2 ? numbers(EDDY_SHAPE(13), dtype, seed + i)
                    : layout == 3 ? numbers(EDDY_SHAPE(7, 1), dtype, seed + i)
                                  : numbers(EDDY_SHAPE(7, 13), dtype, seed + i);
    }
    inputs[INPUTS - 1] = numbers(EDDY_SHAPE(7, 13), dtypes[draw(p, 8)], seed + INPUTS);
}

static uint32_t try_random(uint64_t seed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *inputs[INPUTS], *others[INPUTS], *results[2], *expected[2], *given[2];
    pool p = {.state = seed}, again = p;
    make_inputs(&p, 1, inputs);
    make_inputs(&again, 50, others);
    must(eddy_record_begin(NULL));
    compute(inputs, seed, results);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"a", inputs[0], EDDY_ROLE_INPUT}, {"b", inputs[1], EDDY_ROLE_INPUT},
                      {"c", inputs[2], EDDY_ROLE_INPUT}, {"d", inputs[3], EDDY_ROLE_INPUT},
                      {"x", results[0], EDDY_ROLE_OUTPUT}, {"y", results[1], EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    uint32_t count = fusions_of(program)->count;
    must_have_kernels(program, count);
    compute(others, seed, expected);
    must(eddy_program_run(program, (eddy_list){others, INPUTS}, given));
    char what[64];
    snprintf(what, sizeof(what), "seed %llu", (unsigned long long)seed);
    must_have_same_bits(expected[0], given[0], what);
    must_have_same_bits(expected[1], given[1], what);
    end(scope, &program);
    return count;
}

/* The driver's seed makes others of them. */
Test(cuda_fusion, random_programs_have_the_bits_of_calls, .init = begin) {
    const char *text = getenv("FAKE_CUDA_SEED");
    uint64_t seed = (uint64_t)(text ? atoi(text) : 1) * 1000;
    uint32_t fusions = 0;
    for (uint64_t i = 0; fusions < 4; i++)
        fusions += try_random(seed + i);
}
