#include <base/number.h>
#include <criterion/criterion.h>
#include <vm/price.h>

/* An op that takes so long, alone and with helpers. */
typedef struct made_up {
    const char *op;
    uint32_t cost_ns;
    int64_t alone_ns, helped_ns;
} made_up;

/* Calls it so often; answers how often it asked for helpers. */
static int call(const made_up *op, int count) {
    int asked = 0;
    for (int i = 0; i < count; i++) {
        eddy_price *price = eddy_price_find(op->op, op->cost_ns);
        bool asks = eddy_price_asks_helpers(price);
        eddy_price_note(price, asks, asks ? op->helped_ns : op->alone_ns);
        asked += asks;
    }
    return asked;
}

/* Where the table has one place for two ops they displace each other: another cost is another place. */
static bool share_a_place(const made_up *a, const made_up *b) {
    return eddy_price_find(a->op, a->cost_ns) == eddy_price_find(b->op, b->cost_ns);
}

static void set_apart(made_up *op, const made_up *first, const made_up *second) {
    while (share_a_place(op, first) || share_a_place(op, second))
        op->cost_ns++;
}

Test(price, both_ways_are_tried_and_the_better_one_is_taken) {
    made_up halved = {"halved", 100000, 80000, 42000}, whole = {"whole", 100000, 80000, 79000};
    set_apart(&whole, &halved, &halved);
    int first = call(&halved, 100);
    cr_assert(first > 90 && first < 100, "%d of the first calls with helpers", first);
    cr_assert_gt(call(&halved, 1000), 900);
    call(&whole, 100);
    cr_assert_lt(call(&whole, 1000), 100);
    cr_assert(eddy_price_is_whole(eddy_price_find(whole.op, whole.cost_ns)));
    cr_assert_not(eddy_price_is_whole(eddy_price_find(halved.op, halved.cost_ns)));
    cr_assert_eq(eddy_price_alone_ns(eddy_price_find(whole.op, whole.cost_ns)), 80000);
}

Test(price, helpers_have_to_save_more_than_they_take) {
    made_up little = {"little", 100000, 80000, 64000};
    call(&little, 100);
    cr_assert_lt(call(&little, 1000), 100);
}

Test(price, what_changes_is_noticed) {
    made_up op = {"changing", 100000, 80000, 90000};
    call(&op, 2000);
    op.helped_ns = 30000;
    call(&op, 5000);
    cr_assert_gt(call(&op, 1000), 900);
    op.helped_ns = 200000;
    call(&op, 1000);
    cr_assert_lt(call(&op, 1000), 100);
}

/* 20 ms of its time at most, but for a look in 128 calls. */
Test(price, what_changes_of_dear_calls_is_noticed_soon) {
    made_up op = {"dear", 300000, 200000, 250000};
    call(&op, 5000);
    op.helped_ns = 90000;
    call(&op, 300);
    cr_assert_gt(call(&op, 100), 90);
}

/* Something else has the processor, as often as not: also where a verdict is next. */
Test(price, long_measurements_count_little) {
    made_up op = {"steady", 100000, 80000, 42000};
    int asked = 0;
    for (int i = 0; i < 2000; i++)
        if (call(&op, 1)) {
            eddy_price_note(eddy_price_find(op.op, op.cost_ns), true, 120000);
            asked++;
        }
    cr_assert_gt(asked, 1800);
}

Test(price, ops_and_classes_of_cost_are_kept_apart) {
    made_up small = {"sized", 20000, 15000, 30000}, large = {"sized", 300000, 250000, 130000},
            other = {"other", 300000, 250000, 260000};
    set_apart(&large, &small, &small);
    set_apart(&other, &small, &large);
    for (int i = 0; i < 500; i++) {
        call(&small, 1);
        call(&large, 1);
        call(&other, 1);
    }
    cr_assert_lt(call(&small, 100), 10);
    cr_assert_gt(call(&large, 100), 90);
    cr_assert_lt(call(&other, 100), 10);
}

Test(price, as_many_ops_as_there_may_be_cost_no_memory_and_find_something) {
    static char names[5000];
    for (int i = 0; i < 5000; i++) {
        eddy_price *price = eddy_price_find(&names[i], 50000);
        cr_assert_not_null(price);
        eddy_price_note(price, eddy_price_asks_helpers(price), INT64_MAX);
    }
    made_up op = {"after", 100000, 80000, 42000};
    call(&op, 100);
    cr_assert_gt(call(&op, 1000), 900);
}
