/* What the entries do and refuse, whatever the seed. */
#include <tests/fake_cuda/program.h>

/* ---- all together ---- */

static void one_of_each(void) {
    float x[BYTES / 4], y[BYTES / 4];
    for (unsigned i = 0; i < BYTES / 4; i++)
        x[i] = (float)i;
    WORKS(open_all());
    WORKS(cu.copy_to_device(block, x, BYTES, a));
    WORKS(cu.fill_bytes(other, 0, BYTES, b));
    order(a, b);
    WORKS(launch_add(b, block, other, other));
    WORKS(launch_add(b, block, other, other));
    order(b, a);
    WORKS(cu.copy_on_device(block, other, BYTES, a));
    WORKS(cu.copy_to_host(y, block, BYTES, a));
    poll_for(a);
    for (unsigned i = 0; i < BYTES / 4; i++)
        MUST(y[i] == 2 * x[i]);
    WORKS(launch_store(b, block, WORDS, 7));
    WORKS(cu.copy_to_host(y, block, BYTES, b));
    wait_for(b);
    uint64_t words[WORDS];
    memcpy(words, y, BYTES);
    for (unsigned i = 0; i < WORDS; i++)
        MUST(words[i] == 7);
    close_all();
}

Test(fake_cuda, a_right_program_has_right_results_and_no_findings) {
    is_right(one_of_each);
}

/* ---- driver, devices, contexts ---- */

static void before_init(void) {
    int count;
    IS(EDDY_CU_NOT_INITIALIZED, cu.device_count(&count));
    IS(EDDY_CU_NOT_INITIALIZED, cu.context_retain(&context, 0));
    IS(EDDY_CU_NOT_INITIALIZED, cu.memory_acquire(&block, 8));
    IS(EDDY_CU_INVALID_VALUE, cu.init(1));
    IS(EDDY_CU_NOT_INITIALIZED, cu.device_count(&count));
    const char *name;
    WORKS(cu.error_name(EDDY_CU_NOT_INITIALIZED, &name));
    MUST(strcmp(name, "CUDA_ERROR_NOT_INITIALIZED") == 0);
    IS(EDDY_CU_INVALID_VALUE, cu.error_name(12345, &name));
    WORKS(cu.driver_version(&count));
    MUST(count >= 12000);
    WORKS(cu.init(0));
    WORKS(cu.init(0));
}

static void devices(void) {
    int count, value;
    size_t memory;
    eddy_cu_device device;
    char name[64];
    WORKS(cu.init(0));
    WORKS(cu.device_count(&count));
    MUST(count == 2);
    WORKS(cu.device_get(&device, 1));
    IS(EDDY_CU_INVALID_DEVICE, cu.device_get(&device, 2));
    IS(EDDY_CU_INVALID_DEVICE, cu.device_get(&device, -1));
    WORKS(cu.device_name(name, sizeof(name), 1));
    MUST(strcmp(name, "Fake CUDA device 1") == 0);
    WORKS(cu.device_name(name, 5, 1));
    MUST(strcmp(name, "Fake") == 0);
    WORKS(cu.device_memory(&memory, 0));
    MUST(memory == 1 << 20);
    WORKS(cu.device_attribute(&value, EDDY_CU_PROCESSOR_COUNT, 0));
    MUST(value == 4);
    WORKS(cu.device_attribute(&value, EDDY_CU_CAPABILITY_MAJOR, 0));
    MUST(value == 9);
    WORKS(cu.device_attribute(&value, EDDY_CU_CAPABILITY_MINOR, 0));
    MUST(value == 0);
    WORKS(cu.device_attribute(&value, EDDY_CU_HAS_STREAM_WRITES, 0));
    MUST(value == 1);
    IS(EDDY_CU_INVALID_DEVICE, cu.device_attribute(&value, EDDY_CU_PROCESSOR_COUNT, 2));
}

static void contexts(void) {
    eddy_cu_context again, second;
    WORKS(cu.init(0));
    IS(EDDY_CU_INVALID_CONTEXT, cu.memory_acquire(&block, 8));
    IS(EDDY_CU_INVALID_CONTEXT, cu.stream_create(&a, 0, 0));
    IS(EDDY_CU_INVALID_CONTEXT, cu.context_release(0));
    IS(EDDY_CU_INVALID_DEVICE, cu.context_retain(&context, 7));
    WORKS(cu.context_retain(&context, 0));
    IS(EDDY_CU_INVALID_CONTEXT, cu.memory_acquire(&block, 8));
    WORKS(cu.context_retain(&again, 0));
    MUST(again == context);
    WORKS(cu.context_retain(&second, 1));
    WORKS(cu.context_set(context));
    WORKS(cu.stream_create(&a, 0, 0));
    WORKS(cu.memory_acquire(&block, 8));
    WORKS(cu.event_create(&event, 0));
    /* Things of one context are none of another. */
    WORKS(cu.context_set(second));
    IS(EDDY_CU_INVALID_HANDLE, cu.event_record(event, a));
    IS(EDDY_CU_INVALID_HANDLE, cu.stream_destroy(a));
    IS(EDDY_CU_INVALID_VALUE, cu.fill_bytes(block, 0, 8, (cu.stream_create(&b, 0, 0), b)));
    IS(EDDY_CU_INVALID_HANDLE, cu.event_record(event, b));
    /* It ends with its last reference, and another one is not the same. */
    WORKS(cu.context_release(0));
    WORKS(cu.context_set(context));
    WORKS(cu.stream_destroy(a));
    WORKS(cu.context_release(0));
    IS(EDDY_CU_INVALID_CONTEXT, cu.memory_acquire(&block, 8));
    IS(EDDY_CU_INVALID_CONTEXT, cu.context_set(context));
    WORKS(cu.context_retain(&again, 0));
    MUST(again != context);
    IS(EDDY_CU_INVALID_CONTEXT, cu.memory_acquire(&block, 8));
    WORKS(cu.context_set(again));
    IS(EDDY_CU_INVALID_HANDLE, cu.event_synchronize(event));
    WORKS(cu.context_set(NULL));
    IS(EDDY_CU_INVALID_CONTEXT, cu.memory_acquire(&block, 8));
}

Test(fake_cuda, nothing_works_before_it_is_set_up) {
    is_right(before_init);
}

Test(fake_cuda, devices_are_numbered_and_described) {
    is_right(devices);
}

Test(fake_cuda, contexts_are_counted_and_current_on_one_thread) {
    is_right(contexts);
}

/* ---- handles ---- */

static void stale_handles(void) {
    WORKS(open_all());
    eddy_cu_stream old_stream;
    eddy_cu_event old_event;
    WORKS(cu.stream_create(&old_stream, EDDY_CU_STREAM_NON_BLOCKING, 0));
    WORKS(cu.event_create(&old_event, EDDY_CU_EVENT_DISABLE_TIMING));
    WORKS(cu.stream_destroy(old_stream));
    WORKS(cu.event_destroy(old_event));
    eddy_cu_stream stream;
    eddy_cu_event new_event;
    WORKS(cu.stream_create(&stream, EDDY_CU_STREAM_NON_BLOCKING, 0));
    WORKS(cu.event_create(&new_event, EDDY_CU_EVENT_DISABLE_TIMING));
    IS(EDDY_CU_INVALID_HANDLE, cu.stream_destroy(old_stream));
    IS(EDDY_CU_INVALID_HANDLE, cu.event_destroy(old_event));
    IS(EDDY_CU_INVALID_HANDLE, cu.event_record(event, old_stream));
    IS(EDDY_CU_INVALID_HANDLE, cu.stream_wait_event(stream, old_event, 0));
    IS(EDDY_CU_INVALID_HANDLE, cu.event_synchronize((eddy_cu_event)stream));
    /* The streams that are there without being made. */
    IS(EDDY_CU_INVALID_HANDLE, cu.fill_bytes(block, 0, 8, NULL));
    IS(EDDY_CU_INVALID_HANDLE, cu.fill_bytes(block, 0, 8, (eddy_cu_stream)1));
    IS(EDDY_CU_INVALID_HANDLE, cu.fill_bytes(block, 0, 8, (eddy_cu_stream)2));
    WORKS(cu.module_unload(module));
    IS(EDDY_CU_INVALID_HANDLE, cu.module_unload(module));
    IS(EDDY_CU_INVALID_HANDLE, launch_store(a, block, 1, 1));
    IS(EDDY_CU_INVALID_HANDLE, cu.module_function(&store, module, "test_store"));
    WORKS(cu.module_load(&module, "another"));
    IS(EDDY_CU_INVALID_HANDLE, launch_store(a, block, 1, 1));
    close_all();
}

static void many_streams(void) {
    WORKS(open_all());
    for (int i = 0; i < 200; i++) {
        eddy_cu_stream stream;
        WORKS(cu.stream_create(&stream, EDDY_CU_STREAM_NON_BLOCKING, 0));
        WORKS(launch_store(stream, block, WORDS, (uint64_t)i));
        order(stream, a);
        WORKS(cu.stream_destroy(stream));
        WORKS(launch_add(a, block, block, other));
        wait_for(a);
    }
    close_all();
}

Test(fake_cuda, handles_end_for_good) {
    is_right(stale_handles);
}

Test(fake_cuda, a_destroyed_stream_still_does_its_work) {
    is_right(many_streams);
}

/* ---- memory ---- */

static void blocks(void) {
    WORKS(open_all());
    eddy_cu_address taken[4], none = 77;
    IS(EDDY_CU_INVALID_VALUE, cu.memory_acquire(&none, 0));
    IS(EDDY_CU_OUT_OF_MEMORY, cu.memory_acquire(&none, 1 << 20));
    IS(EDDY_CU_OUT_OF_MEMORY, cu.memory_acquire(&none, (size_t)-1));
    MUST(none == 77);
    for (int i = 0; i < 4; i++) {
        WORKS(cu.memory_acquire(&taken[i], 200 << 10));
        MUST(taken[i] % 512 == 0);
    }
    /* Enough is free, in two pieces. */
    WORKS(cu.memory_release(taken[0]));
    WORKS(cu.memory_release(taken[2]));
    IS(EDDY_CU_OUT_OF_MEMORY, cu.memory_acquire(&none, 300 << 10));
    WORKS(cu.memory_release(taken[1]));
    WORKS(cu.memory_acquire(&none, 600 << 10));
    MUST(none == taken[0]);
    WORKS(cu.memory_release(none));
    WORKS(cu.memory_release(taken[3]));
    WORKS(cu.memory_release(0));
    MUST(bytes_taken() == 2 * BYTES && handles() == 4);
    close_all();
}

static void patterns(void) {
    WORKS(open_all());
    uint64_t words[WORDS];
    eddy_cu_address again;
    for (int i = 0; i < 2; i++) {
        WORKS(cu.copy_to_host(words, block, BYTES, a));
        wait_for(a);
        for (unsigned w = 0; w < WORDS; w++)
            MUST(words[w] == 0xDBDBDBDBDBDBDBDB);
        WORKS(launch_store(a, block, WORDS, 1));
        wait_for(a);
        WORKS(cu.memory_release(block));
        WORKS(cu.memory_acquire(&again, BYTES));
        MUST(again == block);
    }
    close_all();
}

static void hosts_touch(void) {
    WORKS(open_all());
    *(volatile char *)(uintptr_t)block = 1;
}

Test(fake_cuda, memory_is_finite_and_falls_into_pieces) {
    is_right(blocks);
}

Test(fake_cuda, memory_that_was_not_written_has_a_pattern) {
    is_right(patterns);
}

Test(fake_cuda, the_host_cannot_touch_memory_of_a_device) {
    outcome of = run(hosts_touch, 1, false);
    cr_assert(of.status != 0 && of.status != 97, "%s", of.text);
}

static void sides_of_copies(void) {
    WORKS(open_all());
    IS(EDDY_CU_INVALID_VALUE, cu.copy_to_device((uintptr_t)pinned, pinned, 8, a));
    IS(EDDY_CU_INVALID_VALUE, cu.copy_to_device(block, (void *)(uintptr_t)other, 8, a));
    IS(EDDY_CU_INVALID_VALUE, cu.copy_to_host((void *)(uintptr_t)block, other, 8, a));
    IS(EDDY_CU_INVALID_VALUE, cu.copy_to_host(pinned, (uintptr_t)pinned, 8, a));
    IS(EDDY_CU_INVALID_VALUE, cu.copy_on_device((uintptr_t)pinned, block, 8, a));
    IS(EDDY_CU_INVALID_VALUE, cu.fill_bytes((uintptr_t)pinned, 0, 8, a));
    WORKS(cu.copy_to_device(block, NULL, 0, a));
    close_all();
}

Test(fake_cuda, copies_have_the_sides_that_their_names_say) {
    is_right(sides_of_copies);
}

static void stream_writes(void) {
    WORKS(open_all());
    uint64_t *unmapped, value = 0;
    WORKS(cu.host_acquire((void **)&unmapped, 8, EDDY_CU_HOST_PORTABLE));
    IS(EDDY_CU_INVALID_VALUE, cu.stream_write(a, (uintptr_t)unmapped, 1, 0));
    IS(EDDY_CU_INVALID_VALUE, cu.stream_write(a, (uintptr_t)&value, 1, 0));
    IS(EDDY_CU_INVALID_VALUE, cu.stream_write(a, block + 4, 1, 0));
    IS(EDDY_CU_INVALID_VALUE, cu.stream_write(a, (uintptr_t)pinned + BYTES, 1, 0));
    WORKS(cu.stream_write(a, block + 8, 0x123456789abcdef0, 0));
    WORKS(cu.copy_to_host(&value, block + 8, 8, a));
    WORKS(cu.stream_write(a, (uintptr_t)(pinned + 1), 5, 0));
    poll_for(a);
    MUST(value == 0x123456789abcdef0);
    MUST(pinned[1] == 5);
    WORKS(cu.host_release(unmapped));
    close_all();
}

static void no_stream_writes(void) {
    int value;
    setenv("FAKE_CUDA_STREAM_WRITES", "0", 1);
    setenv("FAKE_CUDA_CAPABILITY", "61", 1);
    WORKS(open_all());
    WORKS(cu.device_attribute(&value, EDDY_CU_HAS_STREAM_WRITES, 0));
    MUST(value == 0);
    WORKS(cu.device_attribute(&value, EDDY_CU_CAPABILITY_MAJOR, 0));
    MUST(value == 6);
    IS(EDDY_CU_NOT_SUPPORTED, cu.stream_write(a, (uintptr_t)pinned, 1, 0));
    close_all();
}

Test(fake_cuda, values_are_written_to_devices_and_to_mapped_memory) {
    is_right(stream_writes);
    is_right(no_stream_writes);
}

static void waits_for_values(void) {
    WORKS(open_all());
    uint64_t value = 0, *word = pinned + 7;
    eddy_cu_address at = (uintptr_t)word;
    *word = 0;
    IS(EDDY_CU_INVALID_VALUE, cu.stream_await(a, (uintptr_t)&value, 1, EDDY_CU_AWAIT_AT_LEAST));
    IS(EDDY_CU_INVALID_VALUE, cu.stream_await(a, at + 4, 1, EDDY_CU_AWAIT_AT_LEAST));
    IS(EDDY_CU_INVALID_VALUE, cu.stream_await(a, at, 1, 1));
    IS(EDDY_CU_INVALID_HANDLE, cu.stream_await(NULL, at, 1, EDDY_CU_AWAIT_AT_LEAST));
    WORKS(cu.stream_write(a, block, 3, 0));
    WORKS(cu.stream_await(a, at, 2, EDDY_CU_AWAIT_AT_LEAST));
    WORKS(cu.copy_to_host(&value, block, 8, a));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    WORKS(launch_store(b, other, 1, 1));
    wait_for(b); /* others go on */
    IS(EDDY_CU_NOT_READY, cu.stream_query(a));
    MUST(value == 0);
    __atomic_store_n(word, 9, __ATOMIC_RELEASE);
    wait_for(a);
    MUST(value == 3);
    close_all();
}

Test(fake_cuda, streams_wait_for_values_of_the_host) {
    is_right(waits_for_values);
}

static void addresses(void) {
    unsigned type = 0;
    int device = 9;
    eddy_cu_context before;
    WORKS(open_all());
    WORKS(cu.context_get(&before));
    MUST(before == context);
    WORKS(cu.pointer_attribute(&type, EDDY_CU_POINTER_MEMORY_TYPE, block + BYTES - 1));
    MUST(type == EDDY_CU_MEMORY_DEVICE);
    WORKS(cu.pointer_attribute(&device, EDDY_CU_POINTER_DEVICE, block));
    MUST(device == 0);
    WORKS(cu.pointer_attribute(&type, EDDY_CU_POINTER_MEMORY_TYPE, (uintptr_t)pinned));
    MUST(type == EDDY_CU_MEMORY_HOST);
    IS(EDDY_CU_INVALID_VALUE,
       cu.pointer_attribute(&type, EDDY_CU_POINTER_MEMORY_TYPE, (uintptr_t)&type));
    IS(EDDY_CU_INVALID_VALUE, cu.pointer_attribute(&type, 1, block));
    close_all();
}

Test(fake_cuda, addresses_are_told_apart) {
    is_right(addresses);
}

static void unpinned(void) {
    long (*holding)(void);
    *(void **)&holding = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_holding_copies");
    uint64_t own[2] = {0};
    WORKS(open_all());
    WORKS(cu.copy_to_device(block, pinned + 1, 8, a));
    WORKS(cu.copy_to_host(pinned + 2, block, 8, a));
    WORKS(cu.copy_to_device(block, own, 0, a));
    MUST(holding() == 0);
    WORKS(cu.copy_to_device(block, own, 8, a));
    WORKS(cu.copy_to_host(own + 1, block, 8, a));
    MUST(holding() == 2);
    close_all();
}

static void little_pinned(void) {
    void *memory;
    setenv("FAKE_CUDA_PINNED", "10000", 1);
    WORKS(open_all());
    IS(EDDY_CU_OUT_OF_MEMORY, cu.host_acquire(&memory, 10001 - BYTES, 0));
    WORKS(cu.host_acquire(&memory, 10000 - BYTES, 0));
    WORKS(cu.host_release(memory));
    WORKS(cu.host_acquire(&memory, 10000 - BYTES, 0));
    WORKS(cu.host_release(memory));
    close_all();
}

Test(fake_cuda, memory_that_is_not_pinned_is_noticed) {
    is_right(unpinned);
    is_right(little_pinned);
}

/* Between two devices; their streams wait for each other's events. */
static void peers(bool has_access) {
    int can;
    uint64_t found = 0;
    eddy_cu_context second;
    eddy_cu_stream there;
    eddy_cu_event after;
    eddy_cu_address memory;
    WORKS(open_all());
    WORKS(cu.can_reach(&can, 1, 0));
    MUST(can == has_access);
    WORKS(cu.context_retain(&second, 1));
    WORKS(cu.context_set(second));
    IS(has_access ? 0 : EDDY_CU_PEERS_UNSUPPORTED, cu.reach(context, 0));
    IS(has_access ? EDDY_CU_PEERS_ALREADY : EDDY_CU_PEERS_UNSUPPORTED, cu.reach(context, 0));
    WORKS(cu.stream_create(&there, EDDY_CU_STREAM_NON_BLOCKING, 0));
    WORKS(cu.event_create(&after, EDDY_CU_EVENT_DISABLE_TIMING));
    WORKS(cu.memory_acquire(&memory, 64));
    WORKS(cu.context_set(context));
    WORKS(launch_store(a, block, 8, 77));
    WORKS(cu.event_record(event, a));
    WORKS(cu.context_set(second));
    WORKS(cu.stream_wait_event(there, event, 0));
    IS(EDDY_CU_INVALID_VALUE, cu.copy_across(block, second, memory, context, 8, there));
    WORKS(cu.copy_across(memory, second, block, context, 64, there));
    WORKS(cu.copy_to_host(&found, memory + 56, 8, there));
    WORKS(cu.event_record(after, there));
    WORKS(cu.event_synchronize(after));
    MUST(found == 77);
    WORKS(cu.memory_release(memory));
    WORKS(cu.event_destroy(after));
    WORKS(cu.stream_destroy(there));
    WORKS(cu.context_release(1));
    WORKS(cu.context_set(context));
    close_all();
}

static void peers_with_access(void) {
    peers(true);
}

static void peers_without_access(void) {
    setenv("FAKE_CUDA_PEERS", "0", 1);
    peers(false);
}

Test(fake_cuda, devices_copy_from_each_other) {
    is_right(peers_with_access);
    is_right(peers_without_access);
}

/* ---- launches ---- */

static void launches(void) {
    WORKS(open_all());
    test_words words = {(uint64_t *)(uintptr_t)block, 1, 1};
    void *parameters[] = {&words.at, &words.count, &words.value};
    size_t bytes = sizeof(words), fewer = bytes - 8;
    void *extra[] = {(void *)1, &words, (void *)2, &bytes, NULL};
    void *wrong[] = {(void *)1, &words, (void *)2, &fewer, NULL};
    void *nameless[] = {(void *)3, &words, NULL};
    void *half[] = {(void *)1, &words, NULL};
#define LAUNCH(x, y, z, block_x, block_y, block_z, shared, listed, given)                          \
    cu.launch(store, x, y, z, block_x, block_y, block_z, shared, a, listed, given)
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 1, 0, parameters, NULL));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 1, 0, parameters, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 1, 0, NULL, wrong));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 1, 0, NULL, nameless));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 1, 0, NULL, half));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(0, 1, 1, 1, 1, 1, 0, NULL, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 65536, 1, 1, 1, 1, 0, NULL, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 0, 1, 0, NULL, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1025, 1, 1, 0, NULL, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 64, 32, 1, 0, NULL, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 65, 0, NULL, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(1, 1, 1, 1, 1, 1, 50000, NULL, extra));
    IS(EDDY_CU_INVALID_VALUE, LAUNCH(0x80000000, 1, 1, 1, 1, 1, 0, NULL, extra));
    WORKS(LAUNCH(0x7fffffff, 65535, 65535, 1024, 1, 1, 49152, NULL, extra));
    /* The parameters are a copy. */
    words.at = NULL;
#undef LAUNCH
    eddy_cu_function none;
    IS(EDDY_CU_NOT_FOUND, cu.module_function(&none, module, "test_nothing"));
    IS(EDDY_CU_INVALID_VALUE, cu.module_load(&module, NULL));
    close_all();
}

static void no_kernels(void) {
    setenv("FAKE_CUDA_KERNELS", "/nowhere.so", 1);
    IS(EDDY_CU_NOT_FOUND, open_all());
}

Test(fake_cuda, launches_take_parameters_in_one_struct_of_their_size) {
    is_right(launches);
}

Test(fake_cuda, without_kernels_it_says_so) {
    outcome of = run(no_kernels, 1, false);
    cr_assert_eq(of.status, 0);
    cr_assert(strstr(of.text, "fake_cuda: no kernels: /nowhere.so"), "%s", of.text);
}

/* ---- when it runs ---- */

static void in_order(void) {
    WORKS(open_all());
    uint64_t words[WORDS];
    for (uint64_t i = 1; i <= 200; i++)
        WORKS(launch_store(i % 3 ? a : b, i % 3 ? block : other, WORDS, i));
    WORKS(cu.copy_to_host(words, block, BYTES, a));
    wait_for(a);
    MUST(words[0] == 200 && words[WORDS - 1] == 200);
    WORKS(cu.copy_to_host(words, other, BYTES, b));
    wait_for(b);
    MUST(words[0] == 198 && words[WORDS - 1] == 198);
    close_all();
}

/* What the host waits for runs, and nothing else; memory of the host is read that late too. */
static void late(void) {
    setenv("FAKE_CUDA_MODE", "lazy", 1);
    WORKS(open_all());
    uint64_t source = 1, words[2] = {0, 0};
    WORKS(cu.copy_to_device(block, &source, 8, a));
    WORKS(cu.copy_to_device(other, &source, 8, b));
    source = 2;
    WORKS(cu.copy_to_host(&words[0], block, 8, a));
    WORKS(cu.copy_to_host(&words[1], other, 8, b));
    MUST(words[0] == 0 && words[1] == 0);
    wait_for(a);
    MUST(words[0] == 2 && words[1] == 0);
    source = 3;
    wait_for(b);
    MUST(words[1] == 3);
    close_all();
}

/* Whether a stream of greater priority is over first, of two that may begin at once, and of which it was launched last. */
static bool is_urgent_first(uint64_t count) {
    setenv("FAKE_CUDA_MODE", "eager", 1);
    eddy_cu_stream urgent;
    eddy_cu_event ends[2];
    long (*turn)(eddy_cu_stream);
    *(void **)&turn = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_turn");
    WORKS(open_all());
    WORKS(cu.stream_create(&urgent, EDDY_CU_STREAM_NON_BLOCKING, -3));
    eddy_cu_stream both[2] = {a, urgent};
    for (unsigned s = 0; s < 2; s++) {
        WORKS(cu.event_create(&ends[s], EDDY_CU_EVENT_DISABLE_TIMING));
        WORKS(cu.stream_await(both[s], (uintptr_t)pinned, 1, EDDY_CU_AWAIT_AT_LEAST));
        for (uint64_t i = 0; i < count; i++)
            WORKS(launch_store(both[s], s ? other : block, WORDS, i));
        WORKS(cu.event_record(ends[s], both[s]));
    }
    __atomic_store_n(pinned, 1, __ATOMIC_RELEASE);
    for (unsigned s = 0; s < 2; s++)
        WORKS(cu.event_synchronize(ends[s]));
    bool is_first = turn(urgent) < turn(a);
    MUST(turn(b) == 0 && turn(NULL) == -1);
    for (unsigned s = 0; s < 2; s++)
        WORKS(cu.event_destroy(ends[s]));
    WORKS(cu.stream_destroy(urgent));
    close_all();
    return is_first;
}

static void priorities_obeyed(void) {
    setenv("FAKE_CUDA_PRIORITIES", "1", 1);
    MUST(is_urgent_first(20));
}

static void urgent_first(void) {
    MUST(is_urgent_first(5));
}

Test(fake_cuda, priorities_are_obeyed_where_that_is_asked_for) {
    is_right(priorities_obeyed);
}

/* So that nothing stands on what a device only prefers. */
Test(fake_cuda, priorities_change_nothing_else) {
    int first = 0;
    for (int seed = 1; seed <= 60; seed++)
        first += run(urgent_first, seed, false).status == 0;
    cr_assert(first > 15 && first < 45, "%d of 60", first);
}

static void priorities(void) {
    static const int asked[] = {INT32_MIN, -6, -5, -4, -1, 0, 1, INT32_MAX};
    static const int expected[] = {-5, -5, -5, -4, -1, 0, 0, 0};
    WORKS(open_all());
    int least, greatest, found;
    WORKS(cu.priority_range(&least, &greatest));
    MUST(least == 0 && greatest == -5);
    for (unsigned i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        eddy_cu_stream stream;
        WORKS(cu.stream_create(&stream, EDDY_CU_STREAM_NON_BLOCKING, asked[i]));
        WORKS(cu.stream_priority(stream, &found));
        MUST(found == expected[i]);
        WORKS(cu.stream_destroy(stream));
        IS(EDDY_CU_INVALID_HANDLE, cu.stream_priority(stream, &found));
    }
    IS(EDDY_CU_INVALID_VALUE, cu.stream_priority(a, NULL));
    close_all();
}

Test(fake_cuda, priorities_are_clamped) {
    cr_assert_eq(run(priorities, 1, false).status, 0);
}

Test(fake_cuda, streams_keep_their_order) {
    is_right(in_order);
}

Test(fake_cuda, lazy_devices_do_what_is_waited_for) {
    /* A machine that is busy elsewhere for longer than the device's patience may fail it: most seeds do not. */
    int held = 0;
    for (int seed = 1; seed <= 20; seed++)
        held += run(late, seed, false).status == 0;
    cr_assert_geq(held, 10);
}

/* ---- variables ---- */

static void init_only(void) {
    (void)cu.init(0);
}

static void no_devices(void) {
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    IS(EDDY_CU_NO_DEVICE, cu.init(0));
}

Test(fake_cuda, wrong_variables_are_named) {
    static const char *const wrong[][2] = {
        {"FAKE_CUDA_DEVICES", "9"},         {"FAKE_CUDA_BYTES", "many"},
        {"FAKE_CUDA_MODE", "slow"},         {"FAKE_CUDA_FAIL", "0"},
        {"FAKE_CUDA_FAIL", "3:x"},          {"FAKE_CUDA_FAIL_ENTRY", "cuLaunchKernel"},
        {"FAKE_CUDA_FAIL_ENTRY", "cuX:1;"}, {"FAKE_CUDA_ABORT", "yes"},
    };
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        setenv(wrong[i][0], wrong[i][1], 1);
        outcome of = run(init_only, 1, false);
        cr_assert_neq(of.status, 0, "%s=%s", wrong[i][0], wrong[i][1]);
        cr_assert(strstr(of.text, wrong[i][0]) != NULL, "%s", of.text);
        unsetenv(wrong[i][0]);
    }
    cr_assert_eq(run(no_devices, 1, false).status, 0);
}
