#include <criterion/criterion.h>
#include <streams/lanes.h>

#define MOST 200

/* Takes all that there is, by threads of these lanes in turns; every index is in one slice, slices begin at multiples of the grain. */
static void take_all(int64_t count, int64_t grain, int32_t threads, int32_t asking) {
    eddy_lanes lanes;
    eddy_lanes_init(&lanes, count, grain, threads);
    int times[MOST] = {0};
    int64_t begin, end;
    int32_t lane = 0;
    while (eddy_lanes_has_more(&lanes)) {
        cr_assert(eddy_lanes_take(&lanes, lane, &begin, &end));
        cr_assert_eq(begin % grain, 0);
        cr_assert_eq(end, begin + grain < count ? begin + grain : count);
        for (int64_t i = begin; i < end; i++)
            times[i]++;
        lane = (lane + 1) % asking;
    }
    cr_assert_not(eddy_lanes_take(&lanes, lane, &begin, &end));
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(times[i], 1, "index %lld of %lld by %lld for %d", (long long)i,
                     (long long)count, (long long)grain, threads);
}

Test(lanes, each_index_is_in_exactly_one_slice) {
    static const int64_t counts[] = {0, 1, 2, 63, 64, 65, MOST}, grains[] = {1, 2, 7, 64, 1000};
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
        for (size_t g = 0; g < sizeof(grains) / sizeof(*grains); g++)
            for (int32_t threads = 1; threads <= 2 * EDDY_LANES_MOST; threads += 3)
                for (int32_t asking = 1; asking <= threads; asking += 2)
                    take_all(counts[c], grains[g], threads, asking);
}

Test(lanes, a_thread_has_the_same_stretch_in_every_loop) {
    for (int round = 0; round < 2; round++) {
        eddy_lanes lanes;
        eddy_lanes_init(&lanes, 100, 10, 2);
        int64_t begin, end;
        /* Whoever comes first. */
        for (int i = 0; i < 5; i++) {
            cr_assert(eddy_lanes_take(&lanes, round ? i % 2 ? 0 : 1 : 1, &begin, &end));
            if (!round || i % 2 == 0)
                cr_assert_geq(begin, 50);
            else
                cr_assert_lt(begin, 50);
        }
    }
}

Test(lanes, who_is_done_takes_of_the_others) {
    eddy_lanes lanes;
    eddy_lanes_init(&lanes, 100, 10, 2);
    int64_t begin, end, sum = 0;
    while (eddy_lanes_take(&lanes, 1, &begin, &end))
        sum += end - begin;
    cr_assert_eq(sum, 100);
}
