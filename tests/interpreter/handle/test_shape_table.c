#include <criterion/criterion.h>
#include <interpreter/handle/shape_table.h>
#include <pthread.h>

Test(shape_table, a_shape_has_one_number) {
    const int64_t a[] = {2, 3}, b[] = {3, 2};
    uint32_t note = eddy_shape_table_intern(2, a);
    cr_assert_neq(note, 0);
    cr_assert_eq(eddy_shape_table_intern(2, a), note);
    cr_assert_neq(eddy_shape_table_intern(2, b), note);
    cr_assert_neq(eddy_shape_table_intern(1, a), note);
    cr_assert_neq(eddy_shape_table_intern(0, a), 0);
    eddy_shape shape;
    cr_assert(eddy_shape_table_find(note, &shape));
    cr_assert(shape.rank == 2 && shape.dims[0] == 2 && shape.dims[1] == 3);
    cr_assert_not(eddy_shape_table_find(0, &shape));
}

Test(shape_table, a_full_table_gives_no_more_numbers) {
    for (int64_t i = 0; i < EDDY_SHAPE_NUMBER_MAX; i++)
        cr_assert_neq(eddy_shape_table_intern(1, &i), 0);
    int64_t more = EDDY_SHAPE_NUMBER_MAX;
    cr_assert_eq(eddy_shape_table_intern(1, &more), 0);
    more = 7;
    cr_assert_neq(eddy_shape_table_intern(1, &more), 0, "old ones are still found");
}

static void *intern_many(void *context) {
    uint32_t *notes = context;
    for (int64_t i = 0; i < 2000; i++)
        notes[i] = eddy_shape_table_intern(1, &i);
    return NULL;
}

Test(shape_table, threads_agree) {
    static uint32_t notes[4][2000];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, intern_many, notes[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int64_t i = 0; i < 2000; i++)
        for (int k = 1; k < 4; k++)
            cr_assert_eq(notes[k][i], notes[0][i]);
}
