/* What the fake finds, whatever the seed: each wrong program beside the right one. */
#include <signal.h>
#include <tests/fake_cuda/program.h>

static uint64_t words[WORDS];

static void begin(void) {
    WORKS(open_all());
}

/* ---- waits ---- */

static void write_here_read_there(bool waits) {
    begin();
    WORKS(cu.copy_to_device(block, words, BYTES, a));
    if (waits)
        order(a, b);
    WORKS(launch_add(b, block, block, other));
    close_all();
}

static void waiting_reader(void) {
    write_here_read_there(true);
}

static void hasty_reader(void) {
    write_here_read_there(false);
}

Test(findings, a_reader_waits_for_the_writer) {
    is_right(waiting_reader);
    is_found(hasty_reader, "race: copy to device writes on stream 0 (piece 1) and "
                           "eddy_test_add_dense reads on stream 1");
}

static void read_here_write_there(bool waits) {
    begin();
    WORKS(launch_add(a, block, block, other));
    if (waits)
        order(a, b);
    WORKS(cu.fill_bytes(block + 8, 1, 8, b));
    close_all();
}

static void waiting_writer(void) {
    read_here_write_there(true);
}

static void hasty_writer(void) {
    read_here_write_there(false);
}

Test(findings, a_writer_waits_for_the_readers) {
    is_right(waiting_writer);
    is_found(hasty_writer, "race: eddy_test_add_dense reads");
}

/* Another device reads what a stream of this one writes. */
static void write_here_copy_across(bool waits) {
    eddy_cu_context second;
    eddy_cu_stream there;
    eddy_cu_address memory;
    begin();
    WORKS(cu.context_retain(&second, 1));
    WORKS(cu.context_set(second));
    WORKS(cu.stream_create(&there, EDDY_CU_STREAM_NON_BLOCKING, 0));
    WORKS(cu.memory_acquire(&memory, 64));
    WORKS(cu.context_set(context));
    WORKS(launch_store(a, block, 8, 1));
    WORKS(cu.event_record(event, a));
    WORKS(cu.context_set(second));
    if (waits)
        WORKS(cu.stream_wait_event(there, event, 0));
    WORKS(cu.copy_across(memory, second, block, context, 64, there));
    WORKS(cu.stream_write(there, (uintptr_t)(pinned + 1), 1, 0));
    while (__atomic_load_n(pinned + 1, __ATOMIC_ACQUIRE) != 1)
        sched_yield();
    WORKS(cu.memory_release(memory));
    WORKS(cu.stream_destroy(there));
    WORKS(cu.context_release(1));
    WORKS(cu.context_set(context));
    close_all();
}

static void waiting_device(void) {
    write_here_copy_across(true);
}

static void hasty_device(void) {
    write_here_copy_across(false);
}

Test(findings, a_device_waits_for_another) {
    is_right(waiting_device);
    is_found(hasty_device,
             "race: test_store writes on stream 0 (piece 1) and copy between devices");
}

static void write_twice(bool here) {
    begin();
    eddy_cu_address second = here ? block : other;
    WORKS(launch_store(a, block, WORDS / 2, 1));
    WORKS(launch_store(b, second, WORDS / 2, 2));
    WORKS(launch_add(b, second, second, second));
    close_all();
}

static void two_halves(void) {
    begin();
    WORKS(launch_store(a, block, WORDS / 2, 1));
    WORKS(launch_store(b, block + BYTES / 2, WORDS / 2, 2));
    close_all();
}

static void one_word_twice(void) {
    begin();
    WORKS(launch_store(a, block, WORDS / 2 + 1, 1));
    WORKS(launch_store(b, block + BYTES / 2, WORDS / 2, 2));
    close_all();
}

static void one_block_twice(void) {
    write_twice(true);
}

static void two_blocks(void) {
    write_twice(false);
}

Test(findings, only_the_same_bytes_are_raced_for) {
    _Static_assert(WORDS % 2 == 0, "two halves");
    is_right(two_halves);
    is_right(two_blocks);
    is_found(one_word_twice, "race: test_store writes");
    is_found(one_block_twice, "race: test_store writes");
}

static void two_readers(void) {
    begin();
    WORKS(cu.fill_bytes(block, 0, BYTES, a));
    order(a, b);
    WORKS(cu.copy_to_host(words, block, BYTES, a));
    WORKS(cu.copy_on_device(other, block, BYTES, b));
    close_all();
}

Test(findings, readers_wait_for_nobody) {
    is_right(two_readers);
}

/* More than is remembered without looking what is over. */
static void long_ago(bool waits) {
    begin();
    WORKS(launch_store(a, block, 1, 1));
    for (unsigned i = 0; i < 1500; i++)
        WORKS(launch_store(b, other + 8 * (i % WORDS), 1, 1));
    if (waits)
        order(a, b);
    WORKS(launch_store(b, block, 1, 1));
    close_all();
}

static void long_ago_and_waited_for(void) {
    long_ago(true);
}

static void long_ago_and_forgotten(void) {
    long_ago(false);
}

Test(findings, nothing_under_way_is_forgotten) {
    is_right(long_ago_and_waited_for);
    is_found(long_ago_and_forgotten, "race: test_store writes on stream 0 (piece 1)");
}

static void by_way_of_others(void) {
    begin();
    eddy_cu_stream c;
    WORKS(cu.stream_create(&c, EDDY_CU_STREAM_NON_BLOCKING, 0));
    WORKS(launch_store(a, block, WORDS, 1));
    order(a, c);
    order(c, b);
    WORKS(launch_add(b, block, block, other));
    wait_for(c);
    WORKS(cu.stream_destroy(c));
    close_all();
}

Test(findings, waits_lead_through_other_streams) {
    is_right(by_way_of_others);
}

/* What is launched behind the record is not waited for. */
static void record(bool again) {
    begin();
    WORKS(launch_store(a, other, 1, 1));
    WORKS(cu.event_record(event, a));
    WORKS(launch_store(a, block, WORDS, 1));
    if (again)
        WORKS(cu.event_record(event, a));
    WORKS(cu.stream_wait_event(b, event, 0));
    /* What is recorded later changes no earlier wait. */
    if (!again)
        WORKS(cu.event_record(event, a));
    WORKS(launch_add(b, block, block, other));
    close_all();
}

static void the_last_record(void) {
    record(true);
}

static void an_early_record(void) {
    record(false);
}

static void no_record(void) {
    begin();
    WORKS(cu.stream_wait_event(b, event, 0));
    WORKS(cu.event_synchronize(event));
    close_all();
}

Test(findings, an_event_means_its_last_record_before_the_wait) {
    is_right(the_last_record);
    is_right(no_record);
    is_found(an_early_record, "race: test_store writes");
}

/* ---- the host ---- */

static void host_between(void (*waits)(eddy_cu_stream stream)) {
    begin();
    for (int i = 0; i < 3; i++) {
        WORKS(launch_store(a, block, WORDS, 1));
        waits(a);
        WORKS(launch_add(b, block, block, block));
        waits(b);
    }
    close_all();
}

static void no_wait(eddy_cu_stream stream) {
    (void)stream;
}

static void host_that_waits(void) {
    host_between(wait_for);
}

static void host_that_polls(void) {
    host_between(poll_for);
}

static void host_that_does_not(void) {
    host_between(no_wait);
}

Test(findings, the_host_orders_by_waiting_and_by_polling) {
    is_right(host_that_waits);
    is_right(host_that_polls);
    is_found(host_that_does_not, "race: test_store writes");
}

static void host_memory(bool waits) {
    begin();
    WORKS(cu.copy_to_host(words, block, BYTES, a));
    if (waits)
        order(a, b);
    WORKS(cu.copy_to_device(other, words, 8, b));
    close_all();
}

static void host_memory_in_order(void) {
    host_memory(true);
}

static void host_memory_in_haste(void) {
    host_memory(false);
}

Test(findings, copies_wait_for_copies_of_the_hosts_memory) {
    is_right(host_memory_in_order);
    is_found(host_memory_in_haste, "race: copy to host writes");
}

static void two_devices(bool waits) {
    begin();
    eddy_cu_context second;
    eddy_cu_stream there;
    eddy_cu_address block_there;
    WORKS(cu.context_retain(&second, 1));
    WORKS(cu.context_set(second));
    WORKS(cu.stream_create(&there, EDDY_CU_STREAM_NON_BLOCKING, 0));
    WORKS(cu.memory_acquire(&block_there, BYTES));
    MUST(block_there != block && block_there != other);
    WORKS(cu.context_set(context));
    WORKS(cu.copy_to_host(words, block, BYTES, a));
    WORKS(cu.event_record(event, a));
    WORKS(cu.context_set(second));
    if (waits)
        WORKS(cu.stream_wait_event(there, event, 0));
    WORKS(cu.copy_to_device(block_there, words, BYTES, there));
    poll_for(there);
    WORKS(cu.stream_destroy(there));
    WORKS(cu.memory_release(block_there));
    WORKS(cu.context_release(1));
    WORKS(cu.context_set(context));
    close_all();
}

static void two_devices_in_order(void) {
    two_devices(true);
}

static void two_devices_in_haste(void) {
    two_devices(false);
}

Test(findings, streams_of_two_devices_wait_for_events) {
    is_right(two_devices_in_order);
    is_found(two_devices_in_haste, "race: copy to host writes");
}

/* ---- parameters of Eddy's kernels ---- */

static eddy_cu_result launch_gated(eddy_cu_stream stream, uint64_t number, uint16_t behind) {
    /* The table of marks in `other`, words of errors in the pinned memory behind the tickets. */
    eddy_cuda_dense dense = {.data = {(void *)(uintptr_t)block, (void *)(uintptr_t)block,
                                      (void *)(uintptr_t)(block + BYTES / 2 * (number % 2))},
                             .count = 0};
    dense.gate = (eddy_cuda_gate){.ticket = number,
                                  .marks = (uint64_t *)(uintptr_t)other,
                                  .word = (eddy_cuda_word *)(void *)(pinned + 8) + number,
                                  .behind = {behind}};
    return launch(add, stream, &dense, sizeof(dense));
}

static void sources(bool waits) {
    begin();
    WORKS(launch_gated(a, 1, 0));
    WORKS(launch_gated(b, 2, 0));
    if (waits)
        order(a, b);
    WORKS(launch_gated(b, 3, 2));
    close_all();
}

static void sources_waited_for(void) {
    sources(true);
}

static void sources_in_haste(void) {
    sources(false);
}

Test(findings, a_gate_reads_the_marks_of_its_sources) {
    is_right(sources_waited_for);
    is_found(sources_in_haste, "eddy_test_add_dense reads on stream 1 (piece 2)");
}

/* Every second word of the first half, backwards. */
static void strided(bool within) {
    begin();
    eddy_cu_function copy;
    WORKS(cu.module_function(&copy, module, "eddy_test_copy_strided"));
    eddy_cuda_strided two = {
        .data = {(void *)(uintptr_t)(block + BYTES / 2 - 8), (void *)(uintptr_t)other},
        .count = WORDS / 4,
        .rank = 2,
        .dims = {{0, 0, 0}, {WORDS / 8, 0, 0}},
        .strides = {{-(int64_t)BYTES / 4, -16}, {(int64_t)BYTES / 8, 8}}};
    WORKS(cu.fill_bytes(block, 3, BYTES, a));
    order(a, b);
    WORKS(launch(copy, b, &two, sizeof(two)));
    WORKS(cu.fill_bytes(within ? block + 8 : block + BYTES / 2, 4, 8, a));
    WORKS(cu.copy_to_host(words, other, BYTES / 4, b));
    wait_for(b);
    for (unsigned i = 0; i < WORDS / 4 && !within; i++)
        MUST(words[i] == 0x0303030303030303);
    close_all();
}

static void beside_strides(void) {
    strided(false);
}

static void within_strides(void) {
    strided(true);
}

Test(findings, strided_operands_reach_from_their_least_to_their_greatest_byte) {
    is_right(beside_strides);
    is_found(within_strides, "race: eddy_test_copy_strided reads");
}

/* Of a kernel that says nothing each pointer reads a row. */
static void look(int written) {
    begin();
    eddy_cu_function function;
    test_words parameters = {(uint64_t *)(uintptr_t)block, 1, 0};
    WORKS(cu.module_function(&function, module, "test_look"));
    WORKS(launch(function, a, &parameters, sizeof(parameters)));
    WORKS(launch(function, b, &parameters, sizeof(parameters)));
    WORKS(cu.fill_bytes(block + (eddy_cu_address)written, 1, 8, b));
    close_all();
}

static void within_the_row(void) {
    look(504);
}

static void beyond_the_row(void) {
    look(512);
}

Test(findings, pointers_of_unknown_kernels_read_to_the_end_of_the_row) {
    is_right(beyond_the_row);
    is_found(within_the_row, "race: test_look reads");
}

/* ---- memory in use ---- */

static void free_block(void) {
    begin();
    WORKS(launch_store(a, block, WORDS, 1));
    wait_for(b);
    MUST(findings() == 0);
    WORKS(cu.memory_release(block));
}

static void free_pinned(void) {
    begin();
    WORKS(cu.copy_to_host(pinned + 1, block, 8, a));
    MUST(findings() == 0);
    WORKS(cu.host_release(pinned));
}

static void unload_module(void) {
    begin();
    WORKS(launch_store(a, block, WORDS, 1));
    MUST(findings() == 0);
    WORKS(cu.module_unload(module));
}

static void release_context(void) {
    begin();
    WORKS(launch_store(a, block, WORDS, 1));
    MUST(findings() == 0);
    WORKS(cu.context_release(0));
}

Test(findings, what_is_in_use_is_not_given_back) {
    is_found(free_block, "free in use: of the block");
    is_found(free_pinned, "free in use: of pinned memory");
    is_found(unload_module, "unload in use");
    is_found(release_context, "release in use");
}

static void free_nothing(void) {
    begin();
    IS(EDDY_CU_INVALID_VALUE, cu.memory_release(block + 512));
    MUST(findings() == 1);
    IS(EDDY_CU_INVALID_VALUE, cu.host_release(words));
    MUST(findings() == 2);
    WORKS(cu.memory_release(block));
    IS(EDDY_CU_INVALID_VALUE, cu.memory_release(block));
    MUST(findings() == 3);
}

Test(findings, only_blocks_are_freed_and_only_once) {
    is_found(free_nothing, "free: no block begins at");
}

/* ---- memory that is not there ---- */

static void expect_lost(void) {
    (void)cu.event_record(event, a);
    IS(EDDY_CU_ILLEGAL_ADDRESS, cu.event_synchronize(event));
    /* It stays so. */
    eddy_cu_address none;
    IS(EDDY_CU_ILLEGAL_ADDRESS, cu.memory_acquire(&none, 8));
    IS(EDDY_CU_ILLEGAL_ADDRESS, launch_store(b, other, 1, 1));
    IS(EDDY_CU_ILLEGAL_ADDRESS, cu.event_record(event, b));
}

static void kernel_on_freed_memory(void) {
    begin();
    WORKS(cu.memory_release(block));
    (void)launch_store(a, block, 1, 1);
    expect_lost();
}

static void copy_of_freed_memory(void) {
    begin();
    WORKS(cu.memory_release(block));
    (void)cu.copy_to_host(words, block, 8, a);
    expect_lost();
}

static void copy_across_the_end(void) {
    begin();
    (void)cu.copy_to_device(block + BYTES - 8, words, 16, a);
    expect_lost();
}

static void kernel_on_pageable_memory(void) {
    begin();
    (void)launch_store(a, (uintptr_t)words, 1, 1);
    expect_lost();
}

static eddy_cu_result launch_look(eddy_cu_address at) {
    eddy_cu_function function;
    test_words parameters = {(uint64_t *)(uintptr_t)at, 1, 0};
    WORKS(cu.module_function(&function, module, "test_look"));
    return launch(function, a, &parameters, sizeof(parameters));
}

static void on_another_device(bool says) {
    begin();
    eddy_cu_context second;
    eddy_cu_address there;
    WORKS(cu.context_retain(&second, 1));
    WORKS(cu.context_set(second));
    WORKS(cu.memory_acquire(&there, BYTES));
    WORKS(cu.context_set(context));
    (void)(says ? launch_store(a, there, 1, 1) : launch_look(there));
    expect_lost();
    /* The other one goes on. */
    WORKS(cu.context_set(second));
    WORKS(cu.memory_release(there));
}

static void kernel_on_another_device(void) {
    on_another_device(true);
}

static void unknown_kernel_on_another_device(void) {
    on_another_device(false);
}

static void unknown_kernel_on_freed_memory(void) {
    begin();
    WORKS(cu.memory_release(block));
    (void)launch_look(block + 8);
    expect_lost();
}

static void empty_at_the_end(void) {
    begin();
    WORKS(launch_store(a, block + BYTES, 0, 1));
    WORKS(launch_look(block + BYTES - 8));
    close_all();
}

Test(findings, what_no_block_covers_takes_the_context_with_it) {
    is_found(kernel_on_freed_memory, "illegal address: test_store");
    is_found(copy_of_freed_memory, "illegal address: copy to host");
    is_found(copy_across_the_end, "illegal address: copy to device");
    is_found(kernel_on_pageable_memory, "illegal address: test_store");
    is_found(kernel_on_another_device, "illegal address: test_store");
    is_found(unknown_kernel_on_another_device, "illegal address: test_look");
    is_found(unknown_kernel_on_freed_memory, "illegal address: test_look");
    is_right(empty_at_the_end);
}

static void freed_meanwhile(void) {
    setenv("FAKE_CUDA_MODE", "lazy", 1);
    begin();
    WORKS(launch_store(a, block, 1, 1));
    WORKS(cu.memory_release(block));
    MUST(findings() == 1);
    (void)cu.event_record(event, a);
    IS(EDDY_CU_ILLEGAL_ADDRESS, cu.event_synchronize(event));
    MUST(findings() == 2);
}

Test(findings, what_was_freed_before_it_runs_is_not_there) {
    outcome of = run(freed_meanwhile, 1, false);
    cr_assert_eq(of.status, 97, "%s", of.text);
}

static void write_beyond(void) {
    begin();
    eddy_cu_function function;
    test_words parameters = {(uint64_t *)(uintptr_t)block, WORDS, 1};
    WORKS(cu.module_function(&function, module, "test_store_beyond"));
    WORKS(launch(function, a, &parameters, sizeof(parameters)));
    wait_for(a);
}

Test(findings, a_kernel_that_writes_beyond_a_block_ends_the_process) {
    for (int seed = 1; seed <= seed_count(); seed++) {
        outcome of = run(write_beyond, seed, false);
        cr_assert_eq(of.status, -SIGABRT, "seed %d: %d %s", seed, of.status, of.text);
        cr_assert(strstr(of.text, "fake_cuda: test_store_beyond has written beyond a block"), "%s",
                  of.text);
    }
}

static void overlap(void) {
    begin();
    WORKS(cu.copy_on_device(block, block + 8, 8, a));
    WORKS(cu.copy_on_device(block, block + 8, 16, a));
    close_all();
}

Test(findings, a_copy_on_the_device_does_not_overlap) {
    is_found(overlap, "overlap: copy on device");
}

/* ---- what becomes of them ---- */

Test(findings, the_process_ends_with_their_status_or_at_the_first) {
    outcome of = run(hasty_reader, 1, true);
    cr_assert_eq(of.status, 97);
    cr_assert(strstr(of.text, "fake_cuda: 2 findings") != NULL, "%s", of.text);
    cr_assert_eq(run(waiting_reader, 1, true).status, 0);
    setenv("FAKE_CUDA_ABORT", "1", 1);
    cr_assert_eq(run(hasty_reader, 1, true).status, -SIGABRT);
    cr_assert_eq(run(waiting_reader, 1, true).status, 0);
}
