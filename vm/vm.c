/* Creates, closes and frees a VM. */
#include <base/cpu.h>
#include <base/status.h>
#include <sched.h>
#include <streams/cpu.h>
#include <string.h>
#include <unistd.h>
#include <vm/device.h>
#include <vm/engine.h>
#include <vm/execute.h>
#include <vm/machine.h>
#include <vm/marks.h>
#include <vm/release.h>
#include <vm/scheduler.h>
#include <vm/service.h>
#include <vm/starved.h>
#include <vm/stream.h>
#include <vm/submit.h>
#include <vm/wait.h>

/* Bytes of new storages that issuers may be ahead by, if the system does not state the size of its caches. */
#define LEAD_BYTES_LEAST (16 << 20)
/* More does not help, and virtual machines may state ten times the real cache. */
#define LEAD_BYTES_MOST (32 << 20)

static _Atomic uint32_t created; /* atomic: relaxed; VMs of the process so far */

static eddy_status init_memory(eddy_vm *vm) {
    vm->table = eddy_memory_acquire_zeroed(sizeof(*vm->table), EDDY_MEMORY_TABLE);
    if (!vm->table || eddy_ring_init(&vm->ring) != EDDY_OK || eddy_service_create(vm) != EDDY_OK)
        return EDDY_OUT_OF_MEMORY;
    eddy_blocks_pool_init(&vm->tensors, EDDY_MEMORY_TENSOR);
    eddy_blocks_pool_init(&vm->argument_pool, EDDY_MEMORY_ARGUMENT);
    eddy_blocks_cache_init(&vm->issuer_cache, &vm->tensors);
    eddy_blocks_cache_init(&vm->issuer_arguments, &vm->argument_pool);
    eddy_blocks_cache_init(&vm->engine.cache, &vm->tensors);
    eddy_blocks_cache_init(&vm->engine.arguments, &vm->argument_pool);
    eddy_work_queue *under = eddy_cpu_queue_create(false, 0);
    eddy_vm_stream *stream;
    if (!under)
        return EDDY_OUT_OF_MEMORY;
    if (eddy_vm_stream_add(vm, under, false, NULL, &stream) != EDDY_OK) {
        under->class->destroy(under);
        return EDDY_OUT_OF_MEMORY;
    }
    eddy_vm_stream_release(stream); /* the VM's own is enough */
    return EDDY_OK;
}

static void init_options(eddy_vm *vm, const eddy_runtime_options *options) {
    vm->options = *options;
    vm->options.device = vm->options.isa = NULL; /* borrowed for the call */
    vm->thread_count = options->threads > 0 ? (int32_t)options->threads : eddy_cpu_count();
    vm->is_one_thread = options->uses_one_thread || vm->thread_count == 1;
    vm->is_full_path = options->uses_full_path || options->uses_worker_path;
    vm->is_worker_path = options->uses_worker_path;
    vm->syncs_each_op = options->syncs_each_op;
    vm->checks_finite = options->checks_finite;
    vm->high_count = options->in_flight_high > 0 ? options->in_flight_high : 16384;
    vm->low_count = vm->high_count / 2;
    eddy_marks_limit_set(vm, 0, eddy_memory_limit());
    int64_t cache_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    vm->lead_bytes = cache_bytes < LEAD_BYTES_LEAST  ? LEAD_BYTES_LEAST
                     : cache_bytes > LEAD_BYTES_MOST ? LEAD_BYTES_MOST
                                                     : cache_bytes;
}

static void start_threads(eddy_vm *vm) {
    if (!vm->is_one_thread) {
        int32_t workers = eddy_team_acquire(vm->thread_count);
        vm->has_team = true;
        vm->is_driven = !vm->is_full_path;
        if (workers > 0)
            eddy_scheduler_start(vm);
        if (!vm->has_scheduler) {
            eddy_team_release();
            vm->has_team = vm->is_driven = false;
            vm->is_one_thread = true;
        }
    }
    if (vm->is_one_thread)
        vm->thread_count = 1;
    eddy_team_view_init(&vm->team, vm->thread_count);
}

/* Frees what init_memory acquired, also if it failed half-way. The service ends first: deleters may still run. */
static void fini_memory(eddy_vm *vm) {
    eddy_device_fini_all(vm);
    if (vm->issuer_cache.pool) {
        eddy_blocks_cache_fini(&vm->issuer_cache);
        eddy_blocks_cache_fini(&vm->issuer_arguments);
        eddy_blocks_cache_fini(&vm->engine.cache);
        eddy_blocks_cache_fini(&vm->engine.arguments);
        eddy_blocks_pool_fini(&vm->tensors);
        eddy_blocks_pool_fini(&vm->argument_pool);
    }
    eddy_vm_streams_fini(vm);
    while (vm->chunks) {
        eddy_node_chunk *next = vm->chunks->next;
        eddy_memory_release(vm->chunks, sizeof(*vm->chunks), EDDY_MEMORY_NODE);
        vm->chunks = next;
    }
    eddy_waiter_pool_fini(&vm->waiters);
    if (vm->ring.lines)
        eddy_ring_fini(&vm->ring);
    if (vm->table)
        eddy_storage_table_fini(vm->table);
    eddy_memory_release(vm->table, sizeof(*vm->table), EDDY_MEMORY_TABLE);
    vm->table = NULL;
}

eddy_status eddy_vm_create(const eddy_runtime_options *options, eddy_vm **result) {
    eddy_vm *vm = eddy_memory_acquire_zeroed(sizeof(*vm), EDDY_MEMORY_RUNTIME);
    if (!vm)
        return eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){"runtime_create", NULL}, "no memory");
    init_options(vm, options);
    eddy_lock_init(&vm->submission, EDDY_RANK_SUBMISSION);
    eddy_lock_init(&vm->waiters.lock, EDDY_RANK_LEAF);
    eddy_lock_init(&vm->errors.lock, EDDY_RANK_LEAF);
    vm->process = eddy_process_generation;
    vm->number = eddy_add_relaxed(&created, 1u) + 1;
    vm->engine.ready_tail = &vm->engine.ready_head;
    if (init_memory(vm) != EDDY_OK) {
        eddy_service_destroy(vm, EDDY_CLOCK_FOREVER);
        fini_memory(vm);
        eddy_memory_release(vm, sizeof(*vm), EDDY_MEMORY_RUNTIME);
        return eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){"runtime_create", NULL}, "no memory");
    }
    start_threads(vm);
    eddy_starved_share(vm);
    *result = vm;
    return EDDY_OK;
}

/* ---- the end ---- */

/* Waits until every instruction has retired; false on timeout. No issuer can add any. */
static bool drain(eddy_vm *vm, int64_t deadline_ns) {
    eddy_add_seq_cst(&vm->throttled, 1);
    bool is_drained;
    for (;;) {
        uint32_t progress = eddy_load_seq_cst(&vm->progress);
        eddy_engine_drive(vm);
        eddy_service_run_due(vm);
        eddy_vm_lock(vm);
        is_drained = eddy_load_seq_cst(&vm->retired) == vm->issued;
        eddy_vm_unlock(vm);
        if (is_drained || eddy_clock_ns() >= deadline_ns)
            break;
        eddy_sleep_wait(&vm->progress, progress, deadline_ns);
    }
    eddy_sub_seq_cst(&vm->throttled, 1);
    return is_drained;
}

/* Waits for kernels, waits and throttled calls that have not returned; false on timeout. */
static bool wait_for_leavers(eddy_vm *vm, int64_t deadline_ns) {
    eddy_add_seq_cst(&vm->progress, 1u);
    eddy_sleep_wake_all(&vm->progress);
    while (eddy_load_acquire(&vm->inside) > 0 || eddy_load_seq_cst(&vm->throttled) > 0) {
        if (eddy_clock_ns() >= deadline_ns)
            return false;
        sched_yield();
    }
    return true;
}

/* Takes the engine's role; false if its holder does not give it up in time. */
static bool take_engine(eddy_vm *vm, int64_t deadline_ns) {
    while (eddy_load_acquire(&vm->engine_word) != 0 || !eddy_engine_request(vm)) {
        if (eddy_clock_ns() >= deadline_ns)
            return false;
        sched_yield();
    }
    return true;
}

/* Frees the memory of tensors that outlive the VM; their handles keep the numbers. */
static void free_storages(eddy_vm *vm) {
    for (uint32_t i = 1; i < vm->table->chunk_count * EDDY_STORAGE_CHUNK; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, i);
        if (storage->issuer.is_used)
            eddy_vm_storage_free(vm, storage, &vm->issuer_cache, &vm->issuer_arguments);
    }
}

/* Another thread closes it, or has closed it. */
static eddy_status await_end(eddy_vm *vm, int64_t deadline_ns) {
    while (eddy_load_seq_cst(&vm->ended) == EDDY_VM_OPEN)
        if (!eddy_sleep_wait(&vm->ended, EDDY_VM_OPEN, deadline_ns))
            break;
    return eddy_load_seq_cst(&vm->ended) == EDDY_VM_GIVEN_BACK ? EDDY_SHUT_DOWN : EDDY_TIMED_OUT;
}

static void say_ended(eddy_vm *vm, eddy_vm_ended how) {
    eddy_store_seq_cst(&vm->ended, (uint32_t)how);
    eddy_sleep_wake_all(&vm->ended);
}

/* Everything has retired: ends threads and frees memory. False if a deleter took too long; it is left running. */
static bool give_back(eddy_vm *vm, int64_t deadline_ns) {
    eddy_scheduler_end(vm);
    eddy_vm_lock(vm);
    eddy_vm_flush_releases(vm);
    eddy_store_seq_cst(&vm->state, EDDY_VM_CLOSED);
    eddy_vm_unlock(vm);
    /* Threads that were leaving a call when the state changed. */
    wait_for_leavers(vm, EDDY_CLOCK_FOREVER);
    /* No other thread from here on: later releases find CLOSED, and the role is not given up any more. */
    take_engine(vm, EDDY_CLOCK_FOREVER);
    eddy_engine_turn turn = {.budget_ns = INT64_MAX};
    eddy_engine_work(vm, &turn);
    take_engine(vm, EDDY_CLOCK_FOREVER);
    eddy_vm_releases_drop(vm);
    if (vm->has_team)
        eddy_team_release();
    vm->has_team = false;
    eddy_starved_part(vm);
    free_storages(vm);
    vm->is_kept = !eddy_service_destroy(vm, deadline_ns);
    fini_memory(vm);
    return !vm->is_kept;
}

eddy_status eddy_vm_close(eddy_vm *vm, int64_t timeout_ns) {
    if (vm->process != eddy_process_generation)
        return EDDY_FORKED;
    int64_t deadline_ns = eddy_clock_deadline(timeout_ns);
    eddy_vm_lock(vm);
    bool was_running = eddy_load_relaxed(&vm->state) == EDDY_VM_RUNNING;
    if (was_running)
        eddy_store_seq_cst(&vm->state, EDDY_VM_CLOSING);
    eddy_vm_unlock(vm);
    if (!was_running)
        return await_end(vm, deadline_ns);
    bool is_over =
        drain(vm, deadline_ns) && wait_for_leavers(vm, deadline_ns) && give_back(vm, deadline_ns);
    if (!is_over)
        eddy_starved_part(vm); /* no VM waits for memory of an abandoned one */
    say_ended(vm, is_over ? EDDY_VM_GIVEN_BACK : EDDY_VM_ABANDONED);
    return is_over ? EDDY_OK : EDDY_TIMED_OUT;
}

bool eddy_vm_halt(eddy_vm *vm, int64_t deadline_ns) {
    eddy_store_release(&vm->is_halted, true);
    if (eddy_load_seq_cst(&vm->state) == EDDY_VM_CLOSED)
        return true;
    return take_engine(vm, deadline_ns) && eddy_device_halt_all(vm, deadline_ns);
}

void eddy_vm_destroy(eddy_vm *vm) {
    if (vm->process != eddy_process_generation || eddy_load_seq_cst(&vm->state) != EDDY_VM_CLOSED ||
        vm->is_kept)
        return;
    eddy_vm_releases_drop(vm);
    eddy_memory_release(vm, sizeof(*vm), EDDY_MEMORY_RUNTIME);
}

/* ---- storages without an instruction ---- */

/* Takes a number for existing memory. Frees nothing on failure. */
static eddy_status storage_adopt(eddy_vm *vm, void *data, int64_t bytes, eddy_borrowed *borrow,
                                 eddy_storage_number *storage) {
    eddy_storage_number number;
    eddy_storage *made = eddy_vm_number_take(vm, &number);
    if (!made)
        return EDDY_OUT_OF_MEMORY;
    made->issuer.bytes = bytes;
    made->shared.data = data;
    made->shared.bytes = bytes;
    made->shared.borrow = borrow;
    *storage = number;
    return EDDY_OK;
}

static void call_deleter(eddy_service_item *item) {
    eddy_borrowed *borrow = (eddy_borrowed *)(void *)item;
    borrow->release(borrow->context);
    eddy_memory_release(borrow, sizeof(*borrow), EDDY_MEMORY_RUNTIME);
}

eddy_status eddy_vm_storage_borrow(eddy_vm *vm, void *data, int64_t bytes,
                                   void (*release)(void *context), void *context,
                                   eddy_storage_number *storage) {
    eddy_borrowed *borrow = eddy_memory_acquire(sizeof(*borrow), EDDY_MEMORY_RUNTIME);
    if (!borrow)
        return eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){"from_buffer", NULL}, "no memory");
    *borrow =
        (eddy_borrowed){.item = {.run = call_deleter}, .release = release, .context = context};
    eddy_status status = eddy_vm_enter(vm, (eddy_origin){"from_buffer", NULL});
    if (status == EDDY_OK) {
        status = eddy_service_start(vm, (eddy_origin){"from_buffer", NULL});
        if (status == EDDY_OK) {
            status = storage_adopt(vm, data, bytes, borrow, storage);
            if (status != EDDY_OK)
                eddy_fail(status, (eddy_origin){"from_buffer", NULL},
                          "no memory for a storage number");
        }
        eddy_vm_leave(vm);
    }
    if (status != EDDY_OK)
        eddy_memory_release(borrow, sizeof(*borrow), EDDY_MEMORY_RUNTIME);
    return status;
}

/* Waits for memory with an instruction, so that the request takes its turn among the starved ones. */
static eddy_status create_in_turn(eddy_vm *vm, int64_t bytes, eddy_storage_number *storage,
                                  void **data) {
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = bytes};
    eddy_vm_call call = {
        .instruction = {.descriptor = &eddy_starved_room, .arguments = &bytes, .operand_count = 1},
        .argument_bytes = sizeof(bytes),
        .operands = &target,
        .cost_ps = EDDY_CALLER_RUN_PS + 1};
    eddy_vm_wait wait = {EDDY_CLOCK_FOREVER, {"from_data", NULL}};
    eddy_status status = eddy_vm_submit(vm, &call);
    if (status != EDDY_OK)
        return status;
    eddy_status waited = eddy_vm_wait_storage(vm, target.storage, &wait);
    status = eddy_vm_enter(vm, (eddy_origin){"from_data", NULL});
    if (status != EDDY_OK)
        return status;
    if (waited == EDDY_OK) {
        eddy_vm_inside_begin(vm);
        *data = eddy_vm_storage(vm, target.storage)->shared.data;
        *storage = target.storage;
    } else {
        eddy_vm_release_locked(vm, target.storage);
    }
    eddy_vm_leave(vm);
    return waited;
}

/* Lock: submission. */
static int64_t bytes_in_flight(const eddy_vm *vm, uint32_t device) {
    return vm->marks[device].issued_bytes - eddy_load_seq_cst(&vm->finished_bytes[device]);
}

/* Large requests leave to instructions in flight what the marks allow these. */
static bool may_take_at_once(eddy_vm *vm, int64_t bytes) {
    return bytes <= EDDY_PENDING_BYTES || vm->issued == eddy_load_seq_cst(&vm->finished) ||
           eddy_starved_leaves_room(vm, bytes, bytes_in_flight(vm, 0));
}

eddy_status eddy_vm_storage_create(eddy_vm *vm, int64_t bytes, eddy_storage_number *storage,
                                   void **data) {
    eddy_status status = eddy_vm_enter(vm, (eddy_origin){"from_data", NULL});
    if (status != EDDY_OK)
        return status;
    /* The service thread never waits. */
    bool may_wait = bytes <= eddy_memory_limit() && !eddy_service_is_current_thread();
    void *memory = may_wait && !may_take_at_once(vm, bytes)
                       ? NULL
                       : eddy_blocks_acquire(&vm->issuer_cache, bytes);
    may_wait &= !memory;
    status = memory ? storage_adopt(vm, memory, bytes, NULL, storage) : EDDY_OUT_OF_MEMORY;
    if (status != EDDY_OK)
        eddy_blocks_release(&vm->issuer_cache, memory, bytes);
    else
        eddy_vm_inside_begin(vm);
    eddy_vm_leave(vm);
    if (status != EDDY_OK && may_wait)
        return create_in_turn(vm, bytes, storage, data);
    if (status != EDDY_OK)
        return eddy_fail(status, (eddy_origin){"from_data", NULL}, "no memory for %lld bytes",
                         (long long)bytes);
    *data = memory;
    return EDDY_OK;
}

void eddy_vm_storage_written(eddy_vm *vm) {
    eddy_vm_inside_end(vm);
}

/* ---- asking ---- */

uint32_t eddy_vm_storage_generation(eddy_vm *vm, eddy_storage_number storage) {
    if (!eddy_vm_lock_if_open(vm)) /* the table goes after the VM is closed under it */
        return 0;
    uint32_t generation = eddy_vm_storage(vm, storage)->issuer.generation;
    eddy_vm_unlock(vm);
    return generation;
}

int32_t eddy_vm_thread_count(const eddy_vm *vm) {
    return vm->thread_count;
}

eddy_kernel_team *eddy_vm_team(eddy_vm *vm) {
    return &vm->team;
}

/* Inside. */
static int64_t memory_found(eddy_vm *vm) {
    int64_t count = eddy_blocks_pool_found(&vm->tensors);
    for (uint32_t device = 1; device < eddy_load_acquire(&vm->device_count); device++)
        count += eddy_device_pool_statistics_read(vm->devices[device]->pool).found_count;
    return count;
}

uint32_t eddy_vm_number(const eddy_vm *vm) {
    return vm->number;
}

eddy_vm_counters eddy_vm_counters_read(eddy_vm *vm) {
    eddy_vm_counters counters = {0};
    if (!eddy_vm_lock_if_open(vm))
        return counters;
    eddy_vm_inside_begin(vm);
    counters.submitted = vm->sequence;
    counters.caller_run = vm->caller_run_count + eddy_load_relaxed(&vm->counted.caller_run);
    counters.wakes = vm->wake_count;
    counters.ring_stalls = vm->ring_stall_count;
    counters.in_flight = (int64_t)(vm->issued - eddy_load_acquire(&vm->retired));
    counters.in_flight_peak = vm->in_flight_peak;
    for (uint32_t i = 0; i < EDDY_VM_DEVICES; i++)
        counters.bytes_in_flight += bytes_in_flight(vm, i);
    counters.bytes_in_flight_peak = vm->bytes_in_flight_peak;
    eddy_vm_unlock(vm);
    counters.scheduler_run = eddy_load_relaxed(&vm->counted.scheduler_run);
    counters.worker_run = eddy_load_relaxed(&vm->counted.worker_run);
    counters.nodes_made = eddy_load_acquire(&vm->counted.nodes_made);
    counters.edges_made = eddy_load_relaxed(&vm->counted.edges_made);
    counters.edges_skipped = eddy_load_relaxed(&vm->counted.edges_skipped);
    counters.skipped = eddy_load_relaxed(&vm->skipped_count);
    counters.sleeps = eddy_sleep_count();
    counters.hops = vm->is_one_thread ? 0 : counters.scheduler_run + 2 * counters.worker_run;
    counters.starved = eddy_load_relaxed(&vm->counted.starved);
    counters.healed = eddy_load_relaxed(&vm->healed_count);
    /* Of different moments. */
    int64_t running = eddy_load_relaxed(&vm->counted.running);
    int64_t unbegun =
        (int64_t)(eddy_load_relaxed(&vm->counted.sent) - eddy_load_relaxed(&vm->begun_count));
    unbegun = unbegun < 0 ? 0 : unbegun < running ? unbegun : running;
    counters.ready = eddy_load_relaxed(&vm->counted.ready) + unbegun;
    counters.running = running - unbegun;
    eddy_lock_acquire(&vm->errors.lock);
    counters.errors_made = vm->errors.made;
    counters.errors_seen = vm->errors.seen;
    eddy_lock_release(&vm->errors.lock);
    counters.bytes_live = eddy_load_relaxed(&vm->tensors.live_bytes);
    counters.bytes_peak = eddy_load_relaxed(&vm->tensors.peak_bytes);
    counters.bytes_cached = eddy_blocks_pool_cached_bytes(&vm->tensors);
    counters.memory_found = memory_found(vm);
    eddy_vm_inside_end(vm);
    return counters;
}

int64_t eddy_vm_trim(eddy_vm *vm) {
    if (eddy_vm_enter(vm, (eddy_origin){"trim", NULL}) != EDDY_OK)
        return 0;
    eddy_blocks_cache_flush(&vm->issuer_cache);
    eddy_blocks_cache_flush(&vm->issuer_arguments);
    eddy_vm_inside_begin(vm);
    eddy_vm_leave(vm);
    int64_t bytes = eddy_blocks_pool_trim(&vm->tensors) +
                    eddy_blocks_pool_trim(&vm->argument_pool) + eddy_device_trim_all(vm);
    eddy_vm_inside_end(vm);
    return bytes;
}
