/* Philox against the published vectors; moments and coverage of the numbers; the same bits for every slicing and layout
 * (test_isa.c: and instruction set); normals within 4 ulp (f32: of max(|z|, 1)) of Box and Muller's formula in long double. */
#include "serial_team.h"
#include "tensor.h"
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <kernels/philox.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

Test(random, philox_gives_the_published_vectors) {
    /* Random123's kat_vectors for philox4x32-10. */
    uint32_t w[4];
    eddy_philox(0, 0, 0, w);
    cr_assert(w[0] == 0x6627e8d5 && w[1] == 0xe169c58d && w[2] == 0xbc57ac4c && w[3] == 0x9b00dbd8);
    eddy_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, w);
    cr_assert(w[0] == 0x408f276d && w[1] == 0x41c83b0e && w[2] == 0xa20bc7c6 && w[3] == 0x6d5451fd);
    eddy_philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u, w);
    cr_assert(w[0] == 0xd16cfe09 && w[1] == 0x94fdcceb && w[2] == 0x5001e420 && w[3] == 0x24126ea1);
}

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

Test(random, uniform_numbers_are_the_top_bits) {
    int64_t n = 1001;
    eddy_attributes_random attributes = {.seed = 77, .counter = 5};
    const int bits[] = {24, 53, 11, 8};
    for (int d = 0; d < 4; d++) {
        tensor out = tensor_make(floats[d], 1, &n, UNALIGNED);
        run_kernel(&eddy_cpu_rand, (tensor *[]){&out}, 1, &attributes, &serial_team, NULL);
        for (int64_t i = 0; i < n; i++) {
            uint32_t w[4];
            eddy_philox(77, 5, (uint64_t)i / (d == 1 ? 2 : 4), w);
            uint64_t word =
                d == 1 ? (uint64_t)w[i % 2 * 2] << 32 | w[i % 2 * 2 + 1] : (uint64_t)w[i % 4] << 32;
            double want = ldexp((double)(word >> (64 - bits[d])), -bits[d]);
            cr_assert(tensor_get(&out, i) == want, "%s element %lld",
                      describe("rand", &out, UNALIGNED), (long long)i);
        }
        cr_assert(tensor_guards_hold(&out));
        tensor_free(&out);
    }
}

Test(random, normal_numbers_follow_box_and_muller) {
    int64_t n = 40000;
    eddy_attributes_random attributes = {.seed = 3, .counter = 1};
    for (int d = 0; d < 2; d++) {
        tensor out = tensor_make(floats[d], 1, &n, CONTIGUOUS);
        run_kernel(&eddy_cpu_randn, (tensor *[]){&out}, 1, &attributes, &serial_team, NULL);
        double worst = 0, sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            uint32_t w[4];
            eddy_philox(3, 1, (uint64_t)i / (d == 1 ? 2 : 4), w);
            long double u, t;
            if (d == 1) {
                u = ldexpl((long double)((((uint64_t)w[0] << 32 | w[1]) >> 11) + 1), -53);
                t = ldexpl((long double)(((uint64_t)w[2] << 32 | w[3]) >> 11), -53);
            } else {
                const uint32_t *pair = w + i % 4 / 2 * 2;
                u = (long double)((float)(pair[0] >> 1) + 1.0f) * 0x1p-31L;
                t = (long double)(pair[1] >> 8) * 0x1p-24L;
            }
            long double radius = sqrtl(-2 * logl(u)), angle = 2 * acosl(-1) * t;
            long double want = radius * (i % 2 ? sinl(angle) : cosl(angle));
            double got = tensor_get(&out, i), unit = d == 1 ? 0x1p-52 : 0x1p-23;
            worst = fmax(worst, (double)(fabsl(got - want) / (unit * fmaxl(1, radius))));
            sum += got;
            squares += got * got;
        }
        cr_assert(worst <= 4, "dtype %d: %g ulp", d, worst);
        cr_assert(fabs(sum / (double)n) < 0.02 && fabs(squares / (double)n - 1) < 0.03);
        tensor_free(&out);
    }
}

Test(random, slices_and_layouts_do_not_show) {
    const int64_t shape[] = {3, 129, 211};
    eddy_attributes_random attributes = {.seed = 0x123456789abcdefu, .counter = UINT64_MAX};
    const eddy_kernel *kernels[] = {&eddy_cpu_rand, &eddy_cpu_randn};
    for (int d = 0; d < 4; d++)
        for (int k = 0; k < 2; k++) {
            tensor want = tensor_make(floats[d], 3, shape, CONTIGUOUS);
            run_kernel(kernels[k], (tensor *[]){&want}, 1, &attributes, &serial_team, NULL);
            for (int b = 0; b < OUTPUT_LAYOUTS; b++) {
                tensor got = tensor_make(floats[d], 3, shape, (layout)b);
                run_kernel(kernels[k], (tensor *[]){&got}, 1, &attributes,
                           b % 2 ? &shuffling_team : &threaded_team, NULL);
                cr_assert(tensor_same(&want, &got), "%s",
                          describe(kernels[k]->name, &got, (layout)b));
                cr_assert(tensor_guards_hold(&got));
                tensor_free(&got);
            }
            tensor_free(&want);
        }
    tensor empty = tensor_make(EDDY_F32, 1, &(int64_t){0}, CONTIGUOUS);
    run_kernel(&eddy_cpu_randn, (tensor *[]){&empty}, 1, &attributes, &serial_team, NULL);
    tensor_free(&empty);
}

Test(random, ops_and_seeds_give_different_numbers) {
    int64_t n = 4;
    tensor a = tensor_make(EDDY_F64, 1, &n, CONTIGUOUS),
           b = tensor_make(EDDY_F64, 1, &n, CONTIGUOUS);
    eddy_attributes_random one = {.seed = 1, .counter = 0}, other = {.seed = 1, .counter = 1};
    run_kernel(&eddy_cpu_rand, (tensor *[]){&a}, 1, &one, &serial_team, NULL);
    run_kernel(&eddy_cpu_rand, (tensor *[]){&b}, 1, &other, &serial_team, NULL);
    cr_assert_not(tensor_same(&a, &b));
    tensor_free(&a), tensor_free(&b);
}

/* The number below `bound` of a step: the high half of its block's first 64 bits times the bound. A small bound draws again
 * less than once in 10^14. */
static int64_t drawn(uint64_t seed, uint64_t counter, uint64_t bound, int64_t step) {
    uint32_t w[4];
    eddy_philox(seed, counter, (uint64_t)step, w);
    return (int64_t)((unsigned __int128)((uint64_t)w[0] << 32 | w[1]) * bound >> 64);
}

Test(random, integers_and_permutations_take_the_block_of_their_step) {
    int64_t n = 20011, *want = malloc((size_t)n * sizeof(int64_t));
    tensor out = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
    eddy_attributes_randint integers = {.seed = 21, .counter = 4, .low = -500, .high = 99501};
    run_kernel(&eddy_cpu_randint, (tensor *[]){&out}, 1, &integers, &shuffling_team, NULL);
    for (int64_t i = 0; i < n; i++)
        cr_assert_eq(tensor_get_int(&out, i), drawn(21, 4, 100001, i) - 500, "element %lld",
                     (long long)i);
    for (int64_t i = 0; i < n; i++)
        want[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = drawn(21, 4, (uint64_t)i + 1, i), kept = want[i];
        want[i] = want[j];
        want[j] = kept;
    }
    eddy_attributes_random permutation = {.seed = 21, .counter = 4};
    run_kernel(&eddy_cpu_randperm, (tensor *[]){&out}, 1, &permutation, &serial_team, NULL);
    for (int64_t i = 0; i < n; i++)
        cr_assert_eq(tensor_get_int(&out, i), want[i], "element %lld", (long long)i);
    free(want);
    tensor_free(&out);
}

Test(random, permutations_are_complete_and_uniform) {
    const int64_t sizes[] = {0, 1, 2, 3, 1000, 60000};
    for (int s = 0; s < 6; s++)
        for (int narrow = 0; narrow < 2; narrow++) {
            tensor out = tensor_make(narrow ? EDDY_I32 : EDDY_I64, 1, &sizes[s],
                                     (layout)(s % OUTPUT_LAYOUTS));
            eddy_attributes_random attributes = {.seed = 9, .counter = (uint64_t)s};
            run_kernel(&eddy_cpu_randperm, (tensor *[]){&out}, 1, &attributes, &serial_team, NULL);
            char *seen = calloc(1, (size_t)sizes[s] + 1);
            for (int64_t i = 0; i < sizes[s]; i++) {
                int64_t at = tensor_get_int(&out, i);
                cr_assert(at >= 0 && at < sizes[s] && !seen[at]);
                seen[at] = 1;
            }
            cr_assert(tensor_guards_hold(&out));
            free(seen);
            tensor_free(&out);
        }
    /* All 24 orders of four, 24,000 draws: chi squared with 23 degrees stays below 50 but once in a thousand. */
    int64_t four = 4;
    int counts[256] = {0};
    tensor out = tensor_make(EDDY_I64, 1, &four, CONTIGUOUS);
    for (uint64_t draw = 0; draw < 24000; draw++) {
        eddy_attributes_random attributes = {.seed = 5, .counter = draw};
        run_kernel(&eddy_cpu_randperm, (tensor *[]){&out}, 1, &attributes, &serial_team, NULL);
        int code = 0;
        for (int i = 0; i < 4; i++)
            code = code * 4 + (int)tensor_get_int(&out, i);
        counts[code]++;
    }
    double chi = 0;
    int orders = 0;
    for (int c = 0; c < 256; c++)
        if (counts[c] > 0) {
            orders++;
            chi += (counts[c] - 1000.0) * (counts[c] - 1000.0) / 1000;
        }
    cr_assert(orders == 24 && chi < 50, "%d orders, chi squared %g", orders, chi);
    tensor_free(&out);
}

Test(random, integers_stay_within_their_bounds_in_every_dtype) {
    const eddy_dtype integers[] = {EDDY_I64, EDDY_I32, EDDY_I16, EDDY_I8, EDDY_U8};
    const int64_t shape[] = {5, 61, 67};
    eddy_attributes_randint attributes = {.seed = 5, .counter = 9, .low = 3, .high = 10};
    for (int d = 0; d < 5; d++)
        for (int b = 0; b < OUTPUT_LAYOUTS; b++) {
            tensor first = tensor_make(EDDY_I64, 3, shape, CONTIGUOUS),
                   out = tensor_make(integers[d], 3, shape, (layout)b);
            run_kernel(&eddy_cpu_randint, (tensor *[]){&first}, 1, &attributes, &serial_team, NULL);
            run_kernel(&eddy_cpu_randint, (tensor *[]){&out}, 1, &attributes,
                       b % 2 ? &shuffling_team : &threaded_team, NULL);
            double counts[10] = {0};
            for (int64_t i = 0; i < out.count; i++) {
                int64_t value = tensor_get_int(&out, i);
                cr_assert(value >= 3 && value < 10 && value == tensor_get_int(&first, i));
                counts[value]++;
            }
            for (int v = 3; v < 10; v++)
                cr_assert(fabs(counts[v] / (double)out.count - 1.0 / 7) < 0.01);
            cr_assert(tensor_guards_hold(&out));
            tensor_free(&first), tensor_free(&out);
        }
}

/* Lemire's number below `range` for one step; *again: draws that were made anew. */
static uint64_t integer_of(const eddy_attributes_randint *attributes, uint64_t range, uint64_t step,
                           int *again) {
    for (uint64_t attempt = 0;; attempt++) {
        uint32_t w[4];
        eddy_philox(attributes->seed, attributes->counter, step | attempt << 48, w);
        for (int half = 0; half < 2; half++, ++*again) {
            unsigned __int128 product =
                ((uint64_t)w[2 * half] << 32 | w[2 * half + 1]) * (unsigned __int128)range;
            if ((uint64_t)product >= (UINT64_MAX - range + 1) % range)
                return (uint64_t)(product >> 64);
        }
    }
}

static int check_integers(eddy_attributes_randint attributes, int64_t n) {
    tensor out = tensor_make(EDDY_I64, 1, &n, (layout)test_below(OUTPUT_LAYOUTS));
    run_kernel(&eddy_cpu_randint, (tensor *[]){&out}, 1, &attributes, &shuffling_team, NULL);
    int again = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t range = (uint64_t)attributes.high - (uint64_t)attributes.low;
        int64_t want = (int64_t)((uint64_t)attributes.low +
                                 integer_of(&attributes, range, (uint64_t)i, &again));
        cr_assert_eq(tensor_get_int(&out, i), want, "range %llu, element %lld: %lld, not %lld",
                     (unsigned long long)range, (long long)i, (long long)tensor_get_int(&out, i),
                     (long long)want);
    }
    cr_assert(tensor_guards_hold(&out));
    tensor_free(&out);
    return again;
}

Test(random, integers_are_the_upper_part_of_a_product) {
    const int64_t bounds[][2] = {{0, 1},
                                 {-5, 5},
                                 {0, 1000},
                                 {-1000000, INT64_C(1) << 31},
                                 {0, UINT32_MAX},
                                 {-1, UINT32_MAX},
                                 {-2, UINT32_MAX},
                                 {INT64_MIN, INT64_MAX},
                                 {INT64_MIN / 2 - 1, INT64_MAX / 4}};
    for (int b = 0; b < 9; b++) {
        eddy_attributes_randint attributes = {
            .seed = 5, .counter = 3, .low = bounds[b][0], .high = bounds[b][1]};
        check_integers(attributes, 17001);
    }
    /* Of 32 bits one in 2^32 at most is drawn again, for this range: these were searched for. */
    const uint64_t counters[] = {17770003, 28004302, 29009377};
    for (int c = 0; c < 3; c++) {
        eddy_attributes_randint attributes = {
            .seed = 1, .counter = counters[c], .low = -3, .high = INT64_C(4294901758)};
        cr_assert_eq(check_integers(attributes, 1024), 1);
    }
}

Test(random, integers_of_the_whole_range_and_of_one_number) {
    const int64_t n = 4000;
    tensor out = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
    eddy_attributes_randint attributes = {.seed = 1, .low = INT64_MIN, .high = INT64_MAX};
    run_kernel(&eddy_cpu_randint, (tensor *[]){&out}, 1, &attributes, &serial_team, NULL);
    int64_t negative = 0;
    for (int64_t i = 0; i < n; i++)
        negative += tensor_get_int(&out, i) < 0;
    cr_assert(negative > 1850 && negative < 2150);
    attributes = (eddy_attributes_randint){.seed = 1, .low = -7, .high = -6};
    run_kernel(&eddy_cpu_randint, (tensor *[]){&out}, 1, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < n; i++)
        cr_assert_eq(tensor_get_int(&out, i), -7);
    tensor_free(&out);
    tensor empty = tensor_make(EDDY_I32, 1, &(int64_t){0}, CONTIGUOUS);
    run_kernel(&eddy_cpu_randint, (tensor *[]){&empty}, 1, &attributes, &serial_team, NULL);
    tensor_free(&empty);
}
