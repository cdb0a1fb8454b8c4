/* What calls share: made once, kept while it is used and as long as it is among the last. Each test begins with nothing kept. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <kernels/prepared.h>
#include <stdint.h>

static int made, unmade;

typedef struct thing {
    int64_t number;
} thing;

typedef struct wish {
    int64_t number;
    eddy_status status;
} wish;

static eddy_status make(const eddy_prepared_kind *kind, const void *context, void *prepared) {
    const wish *w = context;
    thing *t = prepared;
    cr_assert_eq(kind->prepared_bytes, sizeof(*t));
    cr_assert(t->number == 0 && (uintptr_t)t % _Alignof(max_align_t) == 0);
    made++;
    t->number = w->number;
    return w->status;
}

static void unmake(const eddy_prepared_kind *kind, void *prepared) {
    cr_assert_eq(kind->prepared_bytes, sizeof(thing));
    cr_assert_gt(((thing *)prepared)->number, 0);
    unmade++;
}

static const eddy_prepared_kind kind = {sizeof(thing), make, unmake},
                                other = {sizeof(thing), make, unmake};

static eddy_status acquire(int64_t number, eddy_status status, const void **prepared) {
    const wish w = {number, status};
    return eddy_prepared_acquire(&kind, &number, sizeof(number), &w, prepared);
}

/* Those numbered first .. end; the references where `held` is there, else they are given back. */
static void acquire_all(int64_t first, int64_t end, const void **held) {
    for (int64_t i = first; i < end; i++) {
        const void *one;
        cr_assert_eq(acquire(i, EDDY_OK, &one), EDDY_OK);
        cr_assert_eq(((const thing *)one)->number, i);
        if (held)
            held[i - first] = one;
        else
            eddy_prepared_release(one);
    }
}

Test(prepared, calls_alike_share_one) {
    const void *one, *two, *third;
    cr_assert(acquire(1, EDDY_OK, &one) == EDDY_OK && acquire(1, EDDY_OK, &two) == EDDY_OK);
    cr_assert(one == two && made == 1);
    cr_assert(acquire(2, EDDY_OK, &third) == EDDY_OK && third != one && made == 2);
    const int64_t number = 1;
    const wish w = {5, EDDY_OK};
    cr_assert_eq(eddy_prepared_acquire(&other, &number, sizeof(number), &w, &third), EDDY_OK);
    cr_assert(third != one && made == 3, "another kind");
    cr_assert_eq(eddy_prepared_acquire(&kind, &number, sizeof(number) / 2, &w, &third), EDDY_OK);
    cr_assert(third != one && made == 4, "a shorter key");
    eddy_prepared_release(NULL);
}

Test(prepared, what_cannot_be_is_kept_in_mind_and_a_failure_is_not) {
    const void *one = &made;
    for (int i = 0; i < 2; i++)
        cr_assert(acquire(1, EDDY_UNSUPPORTED, &one) == EDDY_UNSUPPORTED && one == NULL &&
                  made == 1);
    cr_assert(acquire(2, EDDY_OUT_OF_MEMORY, &one) == EDDY_OUT_OF_MEMORY && one == NULL &&
              made == 2);
    cr_assert(acquire(2, EDDY_OK, &one) == EDDY_OK && made == 3);
    int64_t blocks = eddy_memory_counted(EDDY_MEMORY_CACHE).blocks;
    eddy_memory_fail_at(EDDY_MEMORY_CACHE, 0, 1);
    cr_assert(acquire(3, EDDY_OK, &one) == EDDY_OUT_OF_MEMORY && one == NULL && made == 3);
    eddy_memory_fail_at(EDDY_MEMORY_CACHE, 0, 0);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_CACHE).blocks, blocks);
    cr_assert(acquire(3, EDDY_OK, &one) == EDDY_OK && made == 4);
    acquire_all(10, 400, NULL);
    cr_assert_eq(unmade, made - 1 - 1 - EDDY_PREPARED_MOST,
                 "neither what failed nor what cannot be is unmade");
}

Test(prepared, the_least_recently_used_go_first) {
    acquire_all(1, 1 + EDDY_PREPARED_MOST, NULL);
    cr_assert_eq(unmade, 0);
    acquire_all(1, 11, NULL);
    cr_assert_eq(made, EDDY_PREPARED_MOST);
    acquire_all(1000, 1100, NULL);
    cr_assert_eq(unmade, 100);
    acquire_all(1, 11, NULL);
    cr_assert_eq(made, EDDY_PREPARED_MOST + 100, "the ten used again have stayed");
    acquire_all(11, 12, NULL);
    cr_assert_eq(made, EDDY_PREPARED_MOST + 101);
}

Test(prepared, what_is_in_use_stays_and_goes_later) {
    enum { HELD = EDDY_PREPARED_MOST + 100 };
    const void *held[HELD];
    acquire_all(1, 1 + HELD, held);
    cr_assert_eq(unmade, 0);
    for (int i = 0; i < HELD; i++)
        cr_assert_eq(((const thing *)held[i])->number, i + 1);
    for (int i = 0; i < HELD; i++)
        eddy_prepared_release(held[i]);
    acquire_all(1000, 1100, NULL);
    cr_assert_eq(made - unmade, EDDY_PREPARED_MOST, "%d are left", made - unmade);
}
