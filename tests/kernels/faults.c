#include "faults.h"
#include "serial_team.h"
#include <base/atomic.h>
#include <base/memory.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/isa.h>
#include <kernels/cpu/kernels.h>
#include <string.h>

#ifdef EDDY_HAVE_DNNL
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- calls of the library that fail ---- */

typedef enum fault {
    FAULT_ATTRIBUTES,
    FAULT_PRIMITIVE,
    FAULT_STREAM,
    FAULT_EXECUTION,
    FAULT_PRODUCT
} fault;

static struct {
    fault what;
    int64_t left; /* calls before the one that fails; negative: none does */
    dnnl_status_t status;
} fails = {.left = -1};

static void fail_at(fault what, int64_t first, dnnl_status_t status) {
    fails.what = what;
    fails.left = first;
    fails.status = status;
}

/* Whether one has failed. */
static bool fail_no_more(void) {
    bool has_failed = fails.left < 0;
    fails.left = -1;
    return has_failed;
}

static bool is_to_fail(fault what) {
    return fails.left >= 0 && fails.what == what && fails.left-- == 0;
}

/* ISO C has no conversion from an object pointer to a function's; POSIX gives both one form. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real) {                                                                                   \
        void *found = dlsym(RTLD_NEXT, #name);                                                     \
        memcpy(&real, &found, sizeof(found));                                                      \
    }

/* These stand before the library's, as the program is searched first. */
dnnl_status_t dnnl_primitive_attr_create(dnnl_primitive_attr_t *attributes) {
    REAL(dnnl_primitive_attr_create)
    return is_to_fail(FAULT_ATTRIBUTES) ? fails.status : real(attributes);
}

dnnl_status_t dnnl_primitive_create(dnnl_primitive_t *primitive, const_dnnl_primitive_desc_t plan) {
    REAL(dnnl_primitive_create)
    return is_to_fail(FAULT_PRIMITIVE) ? fails.status : real(primitive, plan);
}

dnnl_status_t dnnl_stream_create(dnnl_stream_t *stream, dnnl_engine_t engine, unsigned flags) {
    REAL(dnnl_stream_create)
    return is_to_fail(FAULT_STREAM) ? fails.status : real(stream, engine, flags);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t *arguments) {
    REAL(dnnl_primitive_execute)
    return is_to_fail(FAULT_EXECUTION) ? fails.status : real(primitive, stream, count, arguments);
}

dnnl_status_t dnnl_sgemm(char transpose_a, char transpose_b, dnnl_dim_t m, dnnl_dim_t n,
                         dnnl_dim_t k, float alpha, const float *a, dnnl_dim_t lda, const float *b,
                         dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc) {
    REAL(dnnl_sgemm)
    return is_to_fail(FAULT_PRODUCT)
               ? fails.status
               : real(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* ---- planning ---- */

/* Gives back what was planned. *run: what would have run. */
static eddy_status plan(const faulted *f, void (**run)(const eddy_kernel_call *call)) {
    eddy_op_view views[FAULTED_TENSORS_MAX];
    _Alignas(8) char memory[EDDY_KERNEL_PLAN_BYTES];
    for (int32_t i = 0; i < f->count; i++) {
        views[i] = (eddy_op_view){.rank = -1};
        if (!f->tensors[i])
            continue;
        views[i] = f->tensors[i]->view;
        views[i].data = NULL;
        views[i].shape = f->tensors[i]->shape;
        views[i].strides = f->tensors[i]->strides;
    }
    const eddy_kernel_call call = {
        .kernel = f->kernel, .views = views, .view_count = f->count, .attributes = f->attributes};
    eddy_kernel_plan made;
    memset(memory, 0xa5, sizeof(memory));
    made.memory = memory;
    eddy_status status = eddy_kernel_prepare(&call, &made);
    if (status == EDDY_OK && f->kernel->end)
        f->kernel->end(memory);
    *run = made.run;
    return status;
}

/* More than are kept, so that all that was prepared before is forgotten. */
static void forget(void) {
    for (int64_t i = 0; i < 300; i++) {
        int64_t width = 128 + 2 * i, half = width / 2;
        const int64_t shape[] = {1, 16, 16, width}, strides[] = {256 * width, 16 * width, width, 1};
        const int64_t small[] = {1, 16, 8, half}, lies[] = {128 * half, 8 * half, half, 1};
        const eddy_attributes_pool attributes = {
            .kernel_size = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}};
        tensor x = {.view = {.dtype = EDDY_F32, .rank = 4}}, out = x;
        memcpy(x.shape, shape, sizeof(shape)), memcpy(x.strides, strides, sizeof(strides));
        memcpy(out.shape, small, sizeof(small)), memcpy(out.strides, lies, sizeof(lies));
        void (*run)(const eddy_kernel_call *call);
        cr_assert_eq(plan(&(faulted){&eddy_cpu_max_pool2d, {&x, &out}, 2, &attributes, 1}, &run),
                     EDDY_OK);
    }
}

/* ---- what is to be so ---- */

typedef struct known {
    const faulted *call;
    tensor want; /* what it gives where nothing lacks */
    void (*run)(const eddy_kernel_call *call);
} known;

static tensor copy_of(const tensor *t) {
    tensor copy = *t;
    copy.memory = malloc(t->bytes);
    memcpy(copy.memory, t->memory, t->bytes);
    copy.view.data = copy.memory + ((char *)t->view.data - t->memory);
    return copy;
}

static eddy_status run(const faulted *f) {
    return run_kernel(f->kernel, f->tensors, f->count, f->attributes, &serial_team, NULL);
}

/* The library serves, with the bits that it always gives. */
static void expect_served(const known *k, const char *after, int64_t number) {
    const faulted *f = k->call;
    void (*way)(const eddy_kernel_call *call);
    cr_assert_eq(plan(f, &way), EDDY_OK, "%s after %s %lld", f->kernel->name, after,
                 (long long)number);
    cr_assert_eq(way, k->run, "%s after %s %lld: other code", f->kernel->name, after,
                 (long long)number);
    cr_assert_eq(run(f), EDDY_OK);
    cr_assert(tensor_same(&k->want, f->tensors[f->count - 1]), "%s after %s %lld: other bits",
              f->kernel->name, after, (long long)number);
}

/* As many as there are kinds, none of which is kept in part. */
static void check_own_memory(const known *k) {
    void (*way)(const eddy_kernel_call *call);
    for (int64_t i = 0; i <= k->call->kinds; i++) {
        forget();
        int64_t blocks = eddy_memory_counted(EDDY_MEMORY_CACHE).blocks;
        eddy_memory_fail_at(EDDY_MEMORY_CACHE, i, 1);
        eddy_status status = plan(k->call, &way);
        bool has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_CACHE, 0, 0);
        cr_assert_eq(has_failed, i < k->call->kinds, "%s: %lld kinds", k->call->kernel->name,
                     (long long)i);
        cr_assert_eq(status, has_failed ? EDDY_OUT_OF_MEMORY : EDDY_OK);
        cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_CACHE).blocks, blocks,
                     "what is kept takes the place of others");
        expect_served(k, "memory for kind", i);
    }
}

static void check_library_memory(const known *k, fault what) {
    void (*way)(const eddy_kernel_call *call);
    for (int64_t i = 0;; i++) {
        forget();
        fail_at(what, i, dnnl_out_of_memory);
        eddy_status status = plan(k->call, &way);
        bool has_failed = fail_no_more();
        cr_assert_eq(status, has_failed ? EDDY_OUT_OF_MEMORY : EDDY_OK);
        expect_served(k, "the library's memory", i);
        if (has_failed)
            continue;
        cr_assert_geq(i, k->call->kinds);
        return;
    }
}

/* Code of ours, until what was kept in mind has been forgotten. */
static void check_no_code(const known *k, fault what, dnnl_status_t said) {
    void (*first)(const eddy_kernel_call *call), (*second)(const eddy_kernel_call *call);
    forget();
    fail_at(what, 0, said);
    cr_assert_eq(plan(k->call, &first), EDDY_OK);
    cr_assert(fail_no_more() && first != k->run);
    cr_assert_eq(plan(k->call, &second), EDDY_OK);
    cr_assert_eq(first, second, "%s: not kept in mind", k->call->kernel->name);
    forget();
    expect_served(k, "no code", 0);
}

static void check_running(const known *k, fault what) {
    for (int64_t i = 0;; i++) {
        fail_at(what, i, dnnl_out_of_memory);
        eddy_status status = run(k->call);
        if (!fail_no_more()) {
            cr_assert_geq(i, 1);
            return;
        }
        cr_assert_eq(status, EDDY_OUT_OF_MEMORY, "%s: call %lld", k->call->kernel->name,
                     (long long)i);
        expect_served(k, "a run", i);
    }
}

/* Less than the library is asked to have before it makes code. */
#define LEFT_BYTES ((rlim_t)48 << 20)

static void check_address_space(const known *k) {
    struct rlimit before;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1 || getrlimit(RLIMIT_AS, &before) != 0)
        cr_assert_fail("the system does not say what the process takes");
    fclose(file);
    forget();
    const struct rlimit little = {(rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + LEFT_BYTES,
                                  before.rlim_max};
    void (*way)(const eddy_kernel_call *call);
    cr_assert_eq(setrlimit(RLIMIT_AS, &little), 0);
    eddy_status status = plan(k->call, &way);
    cr_assert_eq(setrlimit(RLIMIT_AS, &before), 0);
    cr_assert_eq(status, EDDY_OUT_OF_MEMORY);
    expect_served(k, "little address space", 0);
}

void faults_check(const faulted *call) {
    known k = {.call = call};
    if (eddy_isa_chosen() == EDDY_ISA_PORTABLE)
        return;
    cr_assert_eq(run(call), EDDY_OK);
    k.want = copy_of(call->tensors[call->count - 1]);
    cr_assert_eq(plan(call, &k.run), EDDY_OK);
    cr_assert_neq(k.run, call->kernel->run, "%s is not served", call->kernel->name);
    check_own_memory(&k);
    check_library_memory(&k, FAULT_ATTRIBUTES);
    check_library_memory(&k, FAULT_PRIMITIVE);
    check_no_code(&k, FAULT_ATTRIBUTES, dnnl_unimplemented);
    check_no_code(&k, FAULT_PRIMITIVE,
                  dnnl_runtime_error); /* where the system lets nobody make code */
    check_running(&k, FAULT_STREAM);
    check_running(&k, FAULT_EXECUTION);
    check_address_space(&k);
    free(k.want.memory);
}

void faults_check_products(const faulted *call) {
    known k = {.call = call};
    if (eddy_isa_chosen() == EDDY_ISA_PORTABLE)
        return;
    cr_assert_eq(run(call), EDDY_OK);
    k.want = copy_of(call->tensors[call->count - 1]);
    cr_assert_eq(plan(call, &k.run), EDDY_OK);
    check_running(&k, FAULT_PRODUCT);
    free(k.want.memory);
}

void faults_refuse_product(int64_t number) {
    fail_at(FAULT_PRODUCT, number, dnnl_runtime_error);
}
#else
void faults_check(const faulted *call) {
    (void)call;
}

void faults_check_products(const faulted *call) {
    (void)call;
}
#endif
