/* What a tool that injects itself by NVTX is told (base/nvtx.h), on each way that an instruction may go. */
#include "told.h"
#include <base/nvtx.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <eddy/call_sites.h>
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void inject(void) {
    setenv("NVTX_INJECTION64_PATH", NVTX_TOOL, 1);
}

static told_all told_so_far(void) {
    void *tool = dlopen(NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD);
    cr_assert(tool, "nobody has loaded the tool");
    told_so_far_fn *ask;
    *(void **)&ask = dlsym(tool, "nvtx_told_so_far");
    return ask();
}

static eddy_runtime *use_runtime(eddy_runtime_options options) {
    options.size = sizeof(options);
    eddy_runtime *runtime = eddy_runtime_create(&options);
    cr_assert(runtime);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    return runtime;
}

#define LENGTH 200

/* A chain, with a read at the end. */
static void run_chain(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32, NULL);
    for (int i = 0; i < LENGTH; i++)
        x = eddy_mul_s(x, EDDY_S(1));
    cr_assert_eq(eddy_item_f64(eddy_sum(x, EDDY_ALL_AXES, NULL), NULL), 64);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
}

/* On each thread a pop for each push, but for what goes on. */
static void expect_nesting(told_all all) {
    cr_assert_eq(all.lost, 0);
    for (int i = 0; i < all.count; i++) {
        int depth = 0;
        cr_assert(all.items[i].is_domain, "another domain");
        if (i > 0 && all.items[i].thread == all.items[i - 1].thread)
            continue; /* seen with an earlier start */
        for (int k = 0; k < all.count; k++)
            if (all.items[k].thread == all.items[i].thread) {
                depth += all.items[k].kind == TOLD_PUSH  ? 1
                         : all.items[k].kind == TOLD_POP ? -1
                                                         : 0;
                cr_assert_geq(depth, 0);
            }
        cr_assert_leq(depth, 2);
    }
}

static int count_of(told_all all, const char *category, const char *message) {
    int found = 0;
    for (int i = 0; i < all.count; i++)
        found += all.items[i].kind == TOLD_PUSH && strcmp(all.items[i].category, category) == 0 &&
                 strcmp(all.items[i].message, message) == 0;
    return found;
}

static const eddy_runtime_options ways[] = {{.threads = 2},
                                            {.threads = 2, .uses_full_path = true},
                                            {.threads = 3, .uses_worker_path = true},
                                            {.uses_one_thread = true}};

/* By the number, an issue finds its kernel. */
static void expect_kernels_of_issues(told_all all) {
    for (int i = 0; i < all.count; i++) {
        const told *kernel = &all.items[i];
        if (kernel->kind != TOLD_PUSH || strcmp(kernel->category, "kernel") != 0)
            continue;
        cr_assert_gt(kernel->sequence, 0);
        for (int k = 0; k < i; k++)
            cr_assert(all.items[k].kind != TOLD_PUSH ||
                          strcmp(all.items[k].category, "kernel") != 0 ||
                          all.items[k].sequence != kernel->sequence,
                      "%s runs twice", kernel->message);
    }
}

Test(nvtx, a_tool_sees_each_instruction_in_its_phases, .init = inject) {
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        eddy_runtime *runtime = use_runtime(ways[w]);
        told_all before = told_so_far();
        run_chain();
        cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
        told_all all = told_so_far();
        expect_nesting(all);
        all.items += before.count;
        all.count -= before.count;
        cr_assert_eq(count_of(all, "kernel", "mul_s"), LENGTH, "way %zu", w);
        cr_assert_eq(count_of(all, "release", "mul_s"), LENGTH, "way %zu", w);
        cr_assert_eq(count_of(all, "issue", "mul_s"), LENGTH, "way %zu", w);
        expect_kernels_of_issues(all);
        cr_assert_eq(all.registered_twice, 0);
        eddy_runtime_release(&runtime);
        eddy_runtime_use(NULL);
    }
}

Test(nvtx, ranges_tell_shapes_and_bytes, .init = inject) {
    eddy_runtime *runtime = use_runtime((eddy_runtime_options){.threads = 2});
    run_chain();
    told_all all = told_so_far();
    bool is_seen = false;
    for (int i = 0; i < all.count && !is_seen; i++) {
        const told *at = &all.items[i];
        is_seen = at->kind == TOLD_PUSH && strcmp(at->category, "kernel") == 0 &&
                  strcmp(at->message, "mul_s") == 0;
        if (!is_seen)
            continue;
        cr_assert(at->has_schema && at->is_registered);
        cr_assert(strstr(at->call, "mul_s(f32[64]"), "%s", at->call);
        cr_assert_eq(at->bytes, 2 * 64 * 4);
    }
    cr_assert(is_seen);
    eddy_runtime_release(&runtime);
}

/* By the numbers that their ranges have. */
static int kernels_on_workers(void) {
    told_all all = told_so_far();
    int count = 0;
    for (int i = 0; i < all.count; i++) {
        const told *named = &all.items[i];
        if (named->kind != TOLD_THREAD || !strstr(named->message, "eddy-worker"))
            continue;
        for (int k = 0; k < all.count; k++)
            count += all.items[k].kind == TOLD_PUSH && all.items[k].thread == named->thread &&
                     strcmp(all.items[k].message, "mul_s") == 0 &&
                     strcmp(all.items[k].category, "kernel") == 0;
    }
    return count;
}

/* Until they have started, who waits runs all of a chain. */
Test(nvtx, threads_have_their_names, .init = inject) {
    eddy_runtime *runtime =
        use_runtime((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    for (run_chain(); kernels_on_workers() == 0; run_chain())
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    eddy_runtime_release(&runtime);
}

Test(nvtx, streams_have_their_names, .init = inject) {
    eddy_runtime *runtime = use_runtime((eddy_runtime_options){.threads = 2});
    eddy_stream *stream = eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .name = "loader"));
    cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
    run_chain();
    eddy_stream_scope_end();
    eddy_nvtx_name_stream((void *)0x1230, "cuda:0, compute");
    told_all all = told_so_far();
    int on_stream = 0, named = 0;
    for (int i = 0; i < all.count; i++) {
        const told *at = &all.items[i];
        on_stream += at->kind == TOLD_PUSH && strcmp(at->category, "kernel") == 0 &&
                     strcmp(at->message, "mul_s") == 0 && strcmp(at->on, "loader") == 0;
        named += at->kind == TOLD_STREAM && at->stream == 0x1230 &&
                 strcmp(at->message, "cuda:0, compute") == 0;
    }
    cr_assert_eq(on_stream, LENGTH);
    cr_assert_eq(named, 1);
    eddy_stream_release(&stream);
    eddy_runtime_release(&runtime);
}

/* Without a tool nobody is told, and NVTX is not asked for one. */
Test(nvtx, without_a_tool_no_stream_is_named) {
    eddy_nvtx_name_stream((void *)0x1230, "cuda:0, compute");
    cr_assert_null(dlopen(NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD));
}

/* Under the name that it has at each time. */
Test(nvtx, ranges_of_the_user_are_seen, .init = inject) {
    eddy_runtime *runtime = use_runtime((eddy_runtime_options){.threads = 2});
    char name[16] = "step 1";
    for (int step = 1; step <= 2; step++) {
        name[5] = (char)('0' + step);
        cr_assert_eq(eddy_range_push(name), EDDY_OK);
        run_chain();
        eddy_mark("half");
        cr_assert_eq(eddy_range_pop(), EDDY_OK);
    }
    told_all all = told_so_far();
    cr_assert_eq(count_of(all, "range", "step 1"), 1);
    cr_assert_eq(count_of(all, "range", "step 2"), 1);
    int marks = 0;
    for (int i = 0; i < all.count; i++)
        marks += all.items[i].kind == TOLD_MARK && strcmp(all.items[i].message, "half") == 0;
    cr_assert_eq(marks, 2);
    eddy_runtime_release(&runtime);
}

/* The number alone. */
Test(nvtx, a_tool_without_schemas_is_told_the_number, .init = inject) {
    setenv("NVTX_TOOL_SCHEMAS", "0", 1);
    eddy_runtime *runtime = use_runtime((eddy_runtime_options){.threads = 2});
    run_chain();
    told_all all = told_so_far();
    int kernels = 0;
    for (int i = 0; i < all.count; i++) {
        cr_assert_not(all.items[i].has_schema);
        if (all.items[i].kind == TOLD_PUSH && strcmp(all.items[i].category, "kernel") == 0) {
            kernels++;
            cr_assert_gt(all.items[i].sequence, 0);
        }
    }
    cr_assert_geq(kernels, LENGTH);
    eddy_runtime_release(&runtime);
}

/* It is there for the second runtime. */
Test(nvtx, a_tool_may_come_late) {
    eddy_runtime *first = use_runtime((eddy_runtime_options){.threads = 2});
    run_chain();
    cr_assert_null(dlopen(NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD));
    inject();
    eddy_runtime *second = use_runtime((eddy_runtime_options){.threads = 2});
    run_chain();
    told_all all = told_so_far();
    cr_assert_eq(count_of(all, "kernel", "mul_s"), LENGTH);
    eddy_runtime_release(&first);
    eddy_runtime_release(&second);
}

/* A process that no tool watches, or whose tool is not there, goes on. */
Test(nvtx, without_a_tool_nothing_is_loaded) {
    setenv("NVTX_INJECTION64_PATH", "/nowhere/tool.so", 1);
    eddy_runtime *runtime = use_runtime((eddy_runtime_options){.threads = 2});
    run_chain();
    cr_assert_null(dlopen(NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD));
    eddy_runtime_release(&runtime);
}
