#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <vm/machine.h>
#include <vm/ring.h>
#include <vm/spill.h>

typedef struct payload {
    uint64_t arguments[EDDY_RECORD_ARGUMENT_BYTES / 8];
    int64_t sizes[4];
    eddy_mention mentions[EDDY_RECORD_OPERANDS];
    eddy_storage_number releases[EDDY_RECORD_RELEASES];
    uint32_t words, new_count, operands, release_count;
} payload;

/* What record number `n` holds; its lengths vary. */
static payload payload_of(uint64_t n) {
    payload made = {.words = (uint32_t)(n * 7 % 20),
                    .new_count = (uint32_t)(n % 3),
                    .operands = (uint32_t)(n * 5 % (EDDY_RECORD_OPERANDS + 1)),
                    .release_count = (uint32_t)(n * 3 % 9)};
    for (uint32_t i = 0; i < made.words; i++)
        made.arguments[i] = n * 1000 + i;
    for (uint32_t i = 0; i < made.new_count; i++)
        made.sizes[i] = (int64_t)(n * 10 + i);
    for (uint32_t i = 0; i < made.operands; i++)
        made.mentions[i] = (eddy_mention)(n * 100 + i) & EDDY_STORAGE_NUMBER_MAX;
    for (uint32_t i = 0; i < made.release_count; i++)
        made.releases[i] = (eddy_storage_number)(n * 100 + 50 + i);
    return made;
}

static void push(eddy_ring *ring, uint64_t n, const payload *content) {
    eddy_instruction instruction = {
        .view = {.descriptor = (const eddy_vm_descriptor *)(uintptr_t)(n * 8 + 8),
                 .arguments = content->arguments,
                 .operand_count = content->operands,
                 .sequence = n,
                 .address = (const void *)(uintptr_t)(n * 16)},
        .kind = EDDY_KIND_CALL,
        .place = (uint8_t)(n % 2),
        .stream = (uint16_t)(n % 4096),
        .mentions = content->mentions,
        .sizes = content->sizes};
    eddy_ring_publish(eddy_ring_write(ring, &instruction, content->words * 8, content->new_count,
                                      n % 20, content->releases, content->release_count),
                      instruction.view.sequence);
}

/* Reads and pops the record at the head, which must be number `n`. Padding is passed over. */
static void pop(eddy_ring *ring, uint64_t n) {
    eddy_record *record = eddy_ring_peek(ring);
    cr_assert_not_null(record, "record %llu", (unsigned long long)n);
    if ((record->kind_releases & 15) == EDDY_KIND_PAD) {
        eddy_ring_pop(ring, record);
        cr_assert_eq(eddy_load_relaxed(&ring->head) % EDDY_RING_LINES, 0,
                     "padding goes to the end");
        record = eddy_ring_peek(ring);
        cr_assert_not_null(record);
    }
    payload expected = payload_of(n);
    eddy_instruction found = {0};
    const eddy_storage_number *releases;
    uint32_t release_count;
    eddy_ring_read(record, &found, &releases, &release_count);
    cr_assert_eq(found.kind, EDDY_KIND_CALL);
    cr_assert_eq(found.view.sequence, n);
    cr_assert_eq(found.place, n % 2);
    cr_assert_eq(found.stream, n % 4096);
    cr_assert_eq(found.view.operand_count, expected.operands);
    cr_assert_eq(found.view.descriptor, (const eddy_vm_descriptor *)(uintptr_t)(n * 8 + 8));
    cr_assert_eq(found.view.address, (const void *)(uintptr_t)(n * 16));
    cr_assert_eq(found.cost_ns, eddy_record_cost_class_ns(n % 20));
    cr_assert_null(found.spill);
    cr_assert_eq(release_count, expected.release_count);
    cr_assert_arr_eq(found.view.arguments, expected.arguments, 8 * expected.words);
    cr_assert_arr_eq(found.sizes, expected.sizes, 8 * expected.new_count);
    cr_assert_arr_eq(found.mentions, expected.mentions, 4 * expected.operands);
    cr_assert_arr_eq(releases, expected.releases, 4 * expected.release_count);
    eddy_ring_pop(ring, record);
}

static void publish_consumed(eddy_ring *ring) {
    eddy_store_seq_cst(&ring->consumed, eddy_load_relaxed(&ring->head));
}

static eddy_ring ring;

Test(ring, an_empty_ring_has_nothing_to_read) {
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    cr_assert_null(eddy_ring_peek(&ring));
    eddy_ring_fini(&ring);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

Test(ring, records_of_every_length_come_out_as_they_went_in_over_many_laps) {
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    uint64_t written = 0, read = 0;
    while (read < 40000) {
        while (eddy_ring_has_room(&ring, EDDY_RECORD_LINES_MAX)) {
            payload content = payload_of(written);
            push(&ring, written, &content);
            written++;
        }
        uint64_t batch = read % 97 + 1;
        for (uint64_t i = 0; i < batch; i++)
            pop(&ring, read++);
        publish_consumed(&ring);
    }
    while (read < written)
        pop(&ring, read++);
    cr_assert_null(eddy_ring_peek(&ring));
    eddy_ring_fini(&ring);
}

/* R1: after each push and each pop the line at the tail reads as empty, whatever an earlier lap left there. */
Test(ring, bytes_of_an_earlier_lap_are_never_taken_for_a_record) {
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    for (uint32_t i = 0; i < EDDY_RING_LINES; i++) {
        memset((void *)&ring.lines[i], 0xff, sizeof(ring.lines[i]));
        if (i == 0)
            eddy_store_relaxed(&ring.lines[i].ready, 0u);
    }
    for (uint64_t n = 0; n < 30000; n++) {
        cr_assert_null(eddy_ring_peek(&ring), "before record %llu", (unsigned long long)n);
        payload content = payload_of(n);
        cr_assert(eddy_ring_has_room(&ring, EDDY_RECORD_LINES_MAX));
        push(&ring, n, &content);
        cr_assert_eq(
            eddy_load_relaxed(&ring.lines[eddy_load_relaxed(&ring.tail) % EDDY_RING_LINES].ready),
            0);
        pop(&ring, n);
        publish_consumed(&ring);
    }
    eddy_ring_fini(&ring);
}

Test(ring, a_record_that_would_wrap_is_preceded_by_padding) {
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    /* One line each, up to the last but one. */
    payload small = {0};
    eddy_instruction instruction = {.view.arguments = small.arguments, .kind = EDDY_KIND_CALL};
    for (int i = 0; i < EDDY_RING_LINES - 1; i++) {
        eddy_ring_publish(eddy_ring_write(&ring, &instruction, 0, 0, 0, NULL, 0),
                          instruction.view.sequence);
        eddy_ring_pop(&ring, eddy_ring_peek(&ring));
        publish_consumed(&ring);
    }
    cr_assert(eddy_ring_has_room(&ring, eddy_record_lines(80, 0, 0, 0)));
    eddy_ring_publish(eddy_ring_write(&ring, &instruction, 80, 0, 0, NULL, 0),
                      instruction.view.sequence);
    eddy_record *pad = eddy_ring_peek(&ring);
    cr_assert_eq(pad->kind_releases & 15, EDDY_KIND_PAD);
    cr_assert_eq(pad->line_count, 1);
    eddy_ring_pop(&ring, pad);
    cr_assert_eq(eddy_ring_peek(&ring), &ring.lines[0]);
    cr_assert_eq(eddy_load_relaxed(&ring.tail), EDDY_RING_LINES + 2);
    eddy_ring_fini(&ring);
}

/* R2: room is refused before a line that was not read yet would be written, padding included. */
Test(ring, there_is_no_room_until_the_reader_has_published) {
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    uint64_t written = 0;
    while (eddy_ring_has_room(&ring, EDDY_RECORD_LINES_MAX)) {
        payload content = payload_of(written);
        push(&ring, written++, &content);
        cr_assert_leq(eddy_load_relaxed(&ring.tail) - eddy_load_relaxed(&ring.head),
                      EDDY_RING_LINES - 1);
    }
    for (uint64_t n = 0; n < 100; n++)
        pop(&ring, n);
    cr_assert_not(eddy_ring_has_room(&ring, EDDY_RECORD_LINES_MAX), "read, but not published");
    publish_consumed(&ring);
    cr_assert(eddy_ring_has_room(&ring, EDDY_RECORD_LINES_MAX));
    eddy_ring_fini(&ring);
}

Test(ring, the_longest_record_fits_the_greatest_number_of_lines) {
    uint32_t longest = eddy_record_lines(EDDY_RECORD_ARGUMENT_BYTES, EDDY_RECORD_OPERANDS,
                                         EDDY_RECORD_OPERANDS, EDDY_RECORD_RELEASES);
    cr_assert_leq(longest, EDDY_RECORD_LINES_MAX);
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    payload made = {.words = EDDY_RECORD_ARGUMENT_BYTES / 8,
                    .new_count = EDDY_RECORD_OPERANDS,
                    .operands = EDDY_RECORD_OPERANDS,
                    .release_count = EDDY_RECORD_RELEASES};
    int64_t sizes[EDDY_RECORD_OPERANDS];
    for (uint32_t i = 0; i < made.words; i++)
        made.arguments[i] = ~(uint64_t)i;
    for (uint32_t i = 0; i < EDDY_RECORD_OPERANDS; i++) {
        sizes[i] = INT64_MAX - i;
        made.mentions[i] = UINT32_MAX - i;
    }
    for (uint32_t i = 0; i < EDDY_RECORD_RELEASES; i++)
        made.releases[i] = EDDY_STORAGE_NUMBER_MAX - i;
    eddy_instruction instruction = {.view = {.arguments = made.arguments,
                                             .operand_count = EDDY_RECORD_OPERANDS,
                                             .sequence = ((uint64_t)1 << 40) - 1},
                                    .kind = EDDY_KIND_CALL,
                                    .stream = 4095,
                                    .place = 1,
                                    .mentions = made.mentions,
                                    .sizes = sizes};
    eddy_ring_publish(eddy_ring_write(&ring, &instruction, EDDY_RECORD_ARGUMENT_BYTES,
                                      EDDY_RECORD_OPERANDS, 31, made.releases,
                                      EDDY_RECORD_RELEASES),
                      instruction.view.sequence);
    eddy_instruction found = {0};
    const eddy_storage_number *releases;
    uint32_t release_count;
    eddy_ring_read(eddy_ring_peek(&ring), &found, &releases, &release_count);
    cr_assert_eq(found.view.sequence, ((uint64_t)1 << 40) - 1);
    cr_assert_eq(found.stream, 4095);
    cr_assert_eq(found.place, 1);
    cr_assert_eq(found.cost_ns, UINT32_MAX);
    cr_assert_eq(release_count, EDDY_RECORD_RELEASES);
    cr_assert_arr_eq(found.view.arguments, made.arguments, EDDY_RECORD_ARGUMENT_BYTES);
    cr_assert_arr_eq(found.sizes, sizes, sizeof(sizes));
    cr_assert_arr_eq(found.mentions, made.mentions, sizeof(made.mentions));
    cr_assert_arr_eq(releases, made.releases, sizeof(made.releases));
    eddy_ring_fini(&ring);
}

/* The byte map of PROTOCOL.md section 3. */
Test(ring, add_on_sixteen_floats_takes_one_line_with_a_release) {
    cr_assert_eq(eddy_record_lines(8, 1, 3, 0), 1);
    cr_assert_eq(eddy_record_lines(8, 1, 3, 1), 1);
    cr_assert_eq(eddy_record_lines(8, 1, 3, 2), 2);
    cr_assert_eq(eddy_record_lines(128, 1, 3, 0), 3);
    cr_assert_eq(eddy_record_lines(184, 1, 4, 0), 4);
}

Test(ring, a_cost_class_is_as_dear_as_the_cost_or_up_to_twice) {
    for (int64_t cost_ps = 0; cost_ps < INT64_MAX / 8; cost_ps = cost_ps * 5 / 4 + 1) {
        uint64_t class = eddy_record_cost_class(cost_ps);
        cr_assert_lt(class, 32, "five bits, also for %lld ps", (long long)cost_ps);
        int64_t class_ps = (int64_t)eddy_record_cost_class_ns(class) * 1000;
        if (eddy_record_cost_class_ns(class) != UINT32_MAX) {
            cr_assert_geq(class_ps, cost_ps - cost_ps / 100, "%lld ps", (long long)cost_ps);
            cr_assert_leq(class_ps, 2 * cost_ps + 65536, "%lld ps", (long long)cost_ps);
        }
    }
    cr_assert_eq(eddy_record_cost_class(-1), 0);
    cr_assert_eq(eddy_record_cost_class_ns(eddy_record_cost_class(INT64_MAX)), UINT32_MAX);
}

/* Not some of those that share a class with it. */
Test(ring, what_takes_four_us_is_the_schedulers_and_eight_a_workers) {
    cr_assert_leq(eddy_record_cost_class_ns(eddy_record_cost_class(4000000)),
                  EDDY_SCHEDULER_RUN_NS);
    cr_assert_gt(eddy_record_cost_class_ns(eddy_record_cost_class(8000000)), EDDY_SCHEDULER_RUN_NS);
}

Test(ring, a_record_with_a_block_names_it) {
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    eddy_blocks_pool pool;
    eddy_blocks_cache cache;
    eddy_blocks_pool_init(&pool, EDDY_MEMORY_ARGUMENT);
    eddy_blocks_cache_init(&cache, &pool);
    eddy_spill *spill = eddy_spill_acquire(&cache, 1000, 7, 40);
    cr_assert_not_null(spill);
    for (uint32_t i = 0; i < 1000; i++)
        spill->mentions[i] = i;
    eddy_instruction instruction = {.kind = EDDY_KIND_CALL};
    eddy_spill_open(spill, &instruction);
    instruction.view.arguments = &spill;
    eddy_storage_number released[2] = {5, 6};
    eddy_ring_publish(eddy_ring_write(&ring, &instruction, sizeof(spill), 7, 0, released, 2),
                      instruction.view.sequence);
    eddy_instruction found = {0};
    const eddy_storage_number *releases;
    uint32_t release_count;
    eddy_ring_read(eddy_ring_peek(&ring), &found, &releases, &release_count);
    cr_assert_eq(found.spill, spill);
    cr_assert_eq(found.view.operand_count, 1000);
    cr_assert_eq(found.mentions, spill->mentions);
    cr_assert_eq(found.sizes, spill->sizes);
    cr_assert_eq(release_count, 2);
    cr_assert_arr_eq(releases, released, sizeof(released));
    eddy_spill_release(&cache, spill);
    eddy_blocks_cache_fini(&cache);
    eddy_blocks_pool_fini(&pool);
    eddy_ring_fini(&ring);
}

#define HANDED_OVER 60000

static void *write_records(void *unused) {
    (void)unused;
    for (uint64_t n = 0; n < HANDED_OVER;) {
        if (!eddy_ring_has_room(&ring, EDDY_RECORD_LINES_MAX)) {
            sched_yield();
            continue;
        }
        payload content = payload_of(n);
        push(&ring, n++, &content);
    }
    return NULL;
}

Test(ring, a_reader_sees_whole_records_while_another_thread_writes) {
    cr_assert_eq(eddy_ring_init(&ring), EDDY_OK);
    pthread_t writer;
    cr_assert_eq(pthread_create(&writer, NULL, write_records, NULL), 0);
    for (uint64_t n = 0; n < HANDED_OVER;) {
        eddy_record *record = eddy_ring_peek(&ring);
        if (!record) {
            sched_yield();
            continue;
        }
        if ((record->kind_releases & 15) == EDDY_KIND_PAD) {
            eddy_ring_pop(&ring, record);
            publish_consumed(&ring);
            continue;
        }
        pop(&ring, n++);
        if (n % 64 == 0)
            publish_consumed(&ring);
    }
    pthread_join(writer, NULL);
    eddy_ring_fini(&ring);
}
