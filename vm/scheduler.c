#include <base/float_environment.h>
#include <base/log.h>
#include <vm/engine.h>
#include <vm/scheduler.h>

/* How long it spins before it sleeps. Only if all instructions go through this thread: otherwise issuers take the role. */
#define SPIN_NS 20000

/* Sleeps until there may be work (PROTOCOL.md section 7, E2); false if the watch for progress expired. is_asked: the thread with the role
 * got a request after the last check, and will see the work. */
static bool sleep_for_work(eddy_vm *vm, uint32_t word, bool is_asked, int64_t deadline_ns) {
    bool is_in_time = true;
    if ((is_asked || !eddy_engine_has_work(vm)) && !eddy_load_acquire(&vm->is_ending))
        is_in_time = eddy_sleep_wait(&vm->wake_word, word, deadline_ns);
    eddy_store_seq_cst(&vm->is_asleep, false);
    return is_in_time;
}

/* From here on a thread that writes a record wakes this one. Returns the word to sleep on: read before the flag is set, since the thread
 * that clears the flag increments the word afterwards. */
static uint32_t say_asleep(eddy_vm *vm) {
    uint32_t word = eddy_load_seq_cst(&vm->wake_word);
    eddy_vm_lock(vm);
    eddy_store_seq_cst(&vm->is_asleep, true);
    eddy_vm_unlock(vm);
    return word;
}

static void watch_progress(eddy_vm *vm, uint64_t *retired_before) {
    uint64_t retired = eddy_load_acquire(&vm->retired);
    eddy_vm_lock(vm);
    bool is_live = vm->issued != retired;
    eddy_vm_unlock(vm);
    if (is_live && retired == *retired_before && eddy_log_is_set())
        eddy_vm_dump(vm);
    *retired_before = retired;
}

static void scheduler_main(void *context) {
    eddy_vm *vm = context;
    eddy_float_environment_enter();
    uint64_t retired_before = 0;
    eddy_engine_turn turn = {.spin_ns = vm->is_driven ? 0 : SPIN_NS, .budget_ns = INT64_MAX};
    while (!eddy_load_acquire(&vm->is_ending)) {
        if (eddy_load_acquire(&vm->is_halted))
            eddy_thread_park();
        if (eddy_engine_has_work(vm) && eddy_load_relaxed(&vm->engine_word) == 0 &&
            eddy_engine_request(vm)) {
            eddy_engine_work(vm, &turn);
            continue;
        }
        int64_t deadline = vm->options.dump_after_ms > 0
                               ? eddy_clock_deadline(vm->options.dump_after_ms * 1000000)
                               : EDDY_CLOCK_FOREVER;
        uint32_t word = say_asleep(vm);
        bool is_asked = false;
        if (eddy_engine_has_work(vm)) {
            if (eddy_engine_request(vm)) {
                eddy_store_seq_cst(&vm->is_asleep, false);
                eddy_engine_work(vm, &turn);
                continue;
            }
            is_asked = true;
        }
        if (!sleep_for_work(vm, word, is_asked, deadline))
            watch_progress(vm, &retired_before);
    }
}

void eddy_scheduler_start(eddy_vm *vm) {
    vm->has_scheduler =
        eddy_thread_create(&vm->scheduler, "eddy-scheduler", scheduler_main, vm) == EDDY_OK;
}

void eddy_scheduler_end(eddy_vm *vm) {
    if (!vm->has_scheduler)
        return;
    eddy_store_release(&vm->is_ending, true);
    eddy_add_seq_cst(&vm->wake_word, 1u);
    eddy_sleep_wake_one(&vm->wake_word);
    eddy_thread_join(&vm->scheduler);
    vm->has_scheduler = false;
}
