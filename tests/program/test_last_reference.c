/* Programs that nobody holds any more but a run that is on its way: they end where the run does, on a thread that is in the midst of something. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <unistd.h>

/* More than a thread, or the machine, keeps to give back later. */
#define HELD 24

/* x and what the program alone holds, added up. */
static eddy_program *record_sum(eddy_tensor *x, int64_t elements, int held) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *captured[HELD], *y = x;
    for (int i = 0; i < held; i++)
        captured[i] = eddy_full(EDDY_SHAPE(elements), EDDY_S(1), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    for (int i = 0; i < held; i++)
        y = eddy_add(y, captured[i]);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_scope_end(scope);
    return program;
}

/* A run behind a lend of x, which is all that holds its program. */
static eddy_tensor *leave_run(eddy_tensor *x, int64_t elements, int held) {
    eddy_tensor *y;
    eddy_program *program = record_sum(x, elements, held);
    cr_assert_not_null(eddy_map(x, EDDY_WRITE, EDDY_FOREVER));
    must(eddy_program_run(program, EDDY_LIST(x), &y));
    eddy_program_release(&program);
    return y;
}

static const eddy_runtime_options ways[] = {
    {.size = sizeof(eddy_runtime_options), .uses_one_thread = true},
    {.size = sizeof(eddy_runtime_options), .threads = 2},
    {.size = sizeof(eddy_runtime_options), .threads = 2, .uses_worker_path = true}};

Test(last_reference, a_run_gives_up_what_its_program_holds) {
    alarm(60);
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        eddy_runtime *runtime = eddy_runtime_create(&ways[w]);
        must(eddy_runtime_use(runtime));
        for (int64_t elements = 4; elements <= 4096; elements *= 32) {
            eddy_scope *scope = eddy_scope_begin();
            eddy_tensor *x = eddy_ones(EDDY_SHAPE(elements), EDDY_F32, NULL);
            eddy_tensor *y = leave_run(x, elements, HELD);
            must(eddy_unmap(x));
            cr_assert_eq(sum_of(y), (double)elements * (HELD + 1));
            eddy_scope_end(scope);
        }
        must(eddy_sync(EDDY_FOREVER));
        cr_assert_eq(eddy_live_count(), 0);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
}

/* The thread gives small tensors back in heaps. Where it passes on a full one, the machine may end the run on this thread, and the program's tensors
 * fill the next heap. */
static void release_beside(int before, int held) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL),
                *busy = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    eddy_tensor *small[2 * HELD], *y;
    cr_assert_not_null(eddy_map(busy, EDDY_WRITE, EDDY_FOREVER));
    for (int i = 0; i < 2 * HELD; i++) {
        eddy_scope *own = eddy_scope_begin();
        small[i] = eddy_retain(eddy_neg(busy));
        eddy_scope_end(own);
    }
    y = leave_run(x, 4, held);
    for (int i = 0; i < before; i++)
        eddy_release(&small[i]);
    must(eddy_unmap(x));
    for (int i = before; i < 2 * HELD; i++)
        eddy_release(&small[i]);
    must(eddy_unmap(busy));
    cr_assert_eq(sum_of(y), 4. * (held + 1));
    eddy_scope_end(scope);
}

Test(last_reference, heaps_of_releases_stay_apart) {
    for (int round = 0; round < 20; round++)
        for (int before = 0; before < HELD; before++)
            for (int held = 7; held < 12; held++)
                release_beside(before, held);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}
