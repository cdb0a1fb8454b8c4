/* ladder: what happens when memory runs out, rung by rung: caches are given back, work in flight is waited for, then it is an
 * error of the tensors that got none. The process lives, and what it computes afterwards is right.
 *
 *   ladder limit       under the byte limit of the runtime's options
 *   ladder group       in a memory control group, whose limit the library must find; the kernel kills who passes it.
 *                      Exit status 77 where no group can be made */
#include "group.h"

#include <base/memory.h>
#include <eddy/eddy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB ((int64_t)1 << 20)
#define LIMIT (192 * MB)
#define GROUP (512 * MB)
/* What the process holds for itself before its first call. */
#define OWN (32 * MB)
#define TENSORS 600
/* What one copy from the host takes. */
#define DATA (4 * MB)

static float data[DATA / 4];

static const char *mode;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            eddy_error last = {0};                                                                 \
            eddy_error_take(&last);                                                                \
            fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, mode, #condition,          \
                    last.message);                                                                 \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* What tensors hold and what is kept of them. */
static int64_t held(void) {
    return eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes;
}

static eddy_tensor *filled(int64_t bytes, double value) {
    return eddy_full(EDDY_SHAPE(bytes / 4), EDDY_S(value), EDDY_F32, NULL);
}

/* How the tensor is; where it is well, whether its first and last elements are `value`. */
static eddy_status look(eddy_tensor *tensor, double value) {
    eddy_status status = eddy_error_of(tensor, EDDY_FOREVER, NULL);
    if (status != EDDY_OK)
        return status;
    int64_t ends[] = {0, eddy_count_of(tensor) - 1};
    for (int i = 0; i < 2; i++) {
        eddy_tensor *one = eddy_select(tensor, 0, ends[i]);
        CHECK(eddy_item_f64(one, NULL) == value);
        eddy_release(&one);
    }
    return EDDY_OK;
}

static void release_all(eddy_tensor **tensors, int count) {
    for (int i = 0; i < count; i++)
        eddy_release(&tensors[i]);
}

/* What was caused on purpose counts as seen. */
static void forget_errors(void) {
    if (eddy_sync(EDDY_FOREVER) != EDDY_OK)
        eddy_error_take(NULL);
}

/* ---- the first rung: caches ---- */

/* Small pieces and large ones in turn, each time nearly all there is: what one kind has left must make room for the other,
 * in the counts and in the pages that the process has. */
static void caches_are_given_back(void) {
    static eddy_tensor *pieces[TENSORS];
    int count = (int)(eddy_memory_limit() / MB) - 16;
    CHECK(count >= 128 && count <= TENSORS);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < count; i++)
            pieces[i] = filled(MB, i);
        for (int i = 0; i < count; i++)
            CHECK(look(pieces[i], i) == EDDY_OK);
        release_all(pieces, count);
        eddy_tensor *large = filled(128 * MB, round);
        CHECK(look(large, round) == EDDY_OK);
        eddy_release(&large);
    }
}

/* The blocks that threads keep for themselves, too: of each small size as many as a cache holds. */
static void small_blocks_are_given_back(void) {
    enum { SIZES = 24, EACH = 64 };
    static eddy_tensor *small[SIZES * EACH], *ballast[TENSORS];
    eddy_trim();
    for (int i = 0; i < SIZES * EACH; i++)
        small[i] = filled((4 + i / EACH % 4) * 256 << i / EACH / 4, i);
    for (int i = 0; i < SIZES * EACH; i++)
        CHECK(look(small[i], i) == EDDY_OK);
    int64_t kept = held();
    CHECK(kept > 16 * MB);
    release_all(small, SIZES * EACH);
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
    CHECK(held() == kept);
    int count = 0;
    for (; held() + MB <= eddy_memory_limit(); count++)
        CHECK(look(ballast[count] = filled(MB, count), count) == EDDY_OK);
    eddy_tensor *more = filled(16 * MB, 7);
    CHECK(look(more, 7) == EDDY_OK);
    eddy_release(&more);
    release_all(ballast, count);
}

/* ---- the second rung: what is in flight ---- */

/* Issued far ahead: eight times what there is, of which each part is given up after its last use. */
static void work_in_flight_is_waited_for(void) {
    enum { STEPS = 192 };
    eddy_tensor *ends[STEPS];
    for (int i = 0; i < STEPS; i++) {
        eddy_tensor *t = filled(4 * MB, i), *u = eddy_mul_s(t, EDDY_S(2));
        CHECK(ends[i] = eddy_max(u, EDDY_ALL_AXES, NULL));
        eddy_release(&t);
        eddy_release(&u);
    }
    for (int i = 0; i < STEPS; i++)
        CHECK(eddy_item_f64(ends[i], NULL) == 2 * i);
    release_all(ends, STEPS);
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
}

/* A call that copies needs its memory at once: it waits too, and leaves the rest what it needs. The copies are made faster
 * than they are used, and each use makes something small that stays. */
static void data_from_the_host_waits(void) {
    enum { STEPS = 100, SIDE = 1024, WIDTH = 64 };
    eddy_tensor *ends[STEPS], *weight = eddy_ones(EDDY_SHAPE(SIDE, WIDTH), EDDY_F32, NULL);
    for (int i = 0; i < STEPS; i++) {
        eddy_tensor *t = eddy_from_data(data, EDDY_SHAPE(SIDE, SIDE), EDDY_F32, NULL);
        CHECK(t);
        CHECK(ends[i] = eddy_matmul(t, weight));
        eddy_release(&t);
    }
    for (int i = 0; i < STEPS; i++) {
        eddy_tensor *most = eddy_max(ends[i], EDDY_ALL_AXES, NULL);
        CHECK(eddy_item_f64(most, NULL) == SIDE);
        eddy_release(&most);
    }
    release_all(ends, STEPS);
    eddy_release(&weight);
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
}

/* ---- the last rung: an error ---- */

/* Held without end. */
static int hold_too_much(eddy_tensor **pieces, int count) {
    int healthy = 0;
    for (int i = 0; i < count; i++)
        CHECK(pieces[i] = filled(8 * MB, i + 1));
    for (int i = 0; i < count; i++) {
        eddy_status status = look(pieces[i], i + 1);
        CHECK(status == EDDY_OK || status == EDDY_OUT_OF_MEMORY);
        healthy += status == EDDY_OK;
    }
    return healthy;
}

static eddy_tensor *find(eddy_tensor **pieces, int count, eddy_status wanted) {
    for (int i = 0; i < count; i++)
        if (eddy_error_of(pieces[i], EDDY_FOREVER, NULL) == wanted)
            return pieces[i];
    return NULL;
}

static void what_gets_no_memory_holds_the_error(void) {
    int most = (int)(eddy_memory_limit() / (8 * MB)), count = most + 8;
    eddy_tensor *pieces[96];
    CHECK(count <= 96);
    int healthy = hold_too_much(pieces, count);
    CHECK(healthy == most);

    /* What comes of it: the same error; what is changed in place is as it was. */
    eddy_error error;
    eddy_tensor *good = find(pieces, count, EDDY_OK),
                *bad = find(pieces, count, EDDY_OUT_OF_MEMORY);
    eddy_tensor *one = eddy_select(good, 0, 5), *sum = eddy_sum(bad, EDDY_ALL_AXES, NULL);
    double before = eddy_item_f64(one, NULL);
    CHECK(eddy_error_of(sum, EDDY_FOREVER, &error) == EDDY_OUT_OF_MEMORY);
    CHECK(strcmp(error.op, "full") == 0 && error.sequence > 0);
    CHECK(eddy_add_inplace(good, bad) == EDDY_OK);
    CHECK(eddy_error_of(good, EDDY_FOREVER, NULL) == EDDY_SKIPPED);
    CHECK(eddy_recover(EDDY_LIST(good)) == EDDY_OK);
    CHECK(eddy_item_f64(one, NULL) == before);

    /* Ops that find out later what they need, and calls that need it at once. */
    eddy_tensor *places = eddy_nonzero(good);
    CHECK(eddy_error_of(places, EDDY_FOREVER, NULL) == EDDY_OUT_OF_MEMORY);
    int64_t left = eddy_memory_limit() - held();
    eddy_tensor *copy = eddy_from_data(data, EDDY_SHAPE(DATA / 4), EDDY_F32, NULL);
    CHECK((copy == NULL) == (left < DATA));
    CHECK(copy || eddy_error_take(NULL) == EDDY_OUT_OF_MEMORY);
    eddy_release(&copy);
    eddy_release(&places);
    eddy_release(&one);
    eddy_release(&sum);
    forget_errors();

    /* Room again. */
    release_all(pieces, count);
    eddy_tensor *again = filled(64 * MB, 3);
    CHECK(look(again, 3) == EDDY_OK);
    eddy_release(&again);
}

/* ---- and afterwards ---- */

static void the_process_works(void) {
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(256, 256), EDDY_F32, NULL), *b = eddy_matmul(a, a);
    eddy_tensor *c = eddy_softmax(b, 1), *sum = eddy_sum(c, EDDY_ALL_AXES, NULL),
                *most = eddy_max(b, EDDY_ALL_AXES, NULL);
    CHECK(eddy_item_f64(sum, NULL) == 256);
    CHECK(eddy_item_f64(most, NULL) == 256);
    eddy_tensor *all[] = {a, b, c, sum, most};
    release_all(all, 5);
    CHECK(eddy_sync(EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_error_take(NULL) == EDDY_OK);
    CHECK(eddy_live_count() == 0);
}

static void walk(const eddy_runtime_options *options) {
    eddy_runtime *runtime = eddy_runtime_create(options);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    caches_are_given_back();
    small_blocks_are_given_back();
    work_in_flight_is_waited_for();
    data_from_the_host_waits();
    what_gets_no_memory_holds_the_error();
    the_process_works();
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK &&
          eddy_runtime_use(NULL) == EDDY_OK);
    eddy_runtime_release(&runtime);
    CHECK(held() == 0);
}

static int walk_all(int64_t limit) {
    for (int64_t i = 0; i < DATA / 4; i++)
        data[i] = 1;
    static const struct {
        const char *name;
        bool uses_worker_path, uses_one_thread;
    } paths[] = {{"default", false, false}, {"workers", true, false}, {"one thread", false, true}};
    for (int i = 0; i < 3; i++) {
        mode = paths[i].name;
        eddy_runtime_options options = {.size = sizeof(options),
                                        .threads = 2,
                                        .uses_worker_path = paths[i].uses_worker_path,
                                        .uses_one_thread = paths[i].uses_one_thread,
                                        .memory_limit = limit};
        walk(&options);
    }
    return 0;
}

/* ---- the group ---- */

static int walk_in_group(const memory_group *group) {
    if (!memory_group_enter(group)) {
        perror("skipped: the process cannot move into a memory control group");
        return 77;
    }
    char *own = malloc((size_t)OWN);
    memset(own, 1, (size_t)OWN);
    memset(data, 0, sizeof(data));
    int64_t limit = eddy_memory_limit();
    printf("group of %lld bytes, limit of tensors %lld\n", (long long)GROUP, (long long)limit);
    mode = "group";
    CHECK(limit > GROUP / 2 && limit <= GROUP - OWN);
    int status = walk_all(0);
    CHECK(own[OWN / 2] == 1);
    free(own);
    return status;
}

static int in_group(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: a sanitizer's own memory counts in the group\n");
    return 77;
#endif
    memory_group group;
    if (!memory_group_make(&group, GROUP)) {
        printf("skipped: no memory control group can be made here\n");
        return 77;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(100);
        exit(walk_in_group(&group));
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        status = -1;
    printf("at most %lld bytes at once\n", (long long)memory_group_peak(&group));
    memory_group_remove(&group);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "killed by signal %d%s\n", WTERMSIG(status),
            WTERMSIG(status) == SIGKILL ? ": more memory than the group has" : "");
    return 1;
}

int main(int argc, char **argv) {
    alarm(110);
    if (argc > 1 && strcmp(argv[1], "group") == 0)
        return in_group();
    if (argc > 1 && strcmp(argv[1], "limit") == 0)
        return walk_all(LIMIT);
    fprintf(stderr, "usage: ladder limit | group\n");
    return 2;
}
