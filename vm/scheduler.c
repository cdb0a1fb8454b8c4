#include <base/float_environment.h>
#include <base/log.h>
#include <vm/scheduler.h>

/* How long to look for more before sleeping: longer where work kept coming within the time, shorter where it did not. */
#define SPIN_LEAST_NS 20000
#define SPIN_MOST_NS 400000

/* Sleeps until there may be work (PROTOCOL.md section 7, E2); false when the watch for progress rang. */
static bool sleep_for_work(eddy_vm *vm, int64_t deadline_ns) {
    /* Before the flag: who clears it raises the word after, which must not be the word that is slept on. */
    uint32_t word = eddy_load_seq_cst(&vm->wake_word);
    eddy_lock_acquire(&vm->submission);
    eddy_store_seq_cst(&vm->is_asleep, true);
    eddy_lock_release(&vm->submission);
    bool is_in_time = true;
    if (!eddy_engine_has_work(vm) && !eddy_load_acquire(&vm->is_ending))
        is_in_time = eddy_sleep_wait(&vm->wake_word, word, deadline_ns);
    eddy_store_seq_cst(&vm->is_asleep, false);
    return is_in_time;
}

static void watch_progress(eddy_vm *vm, uint64_t *retired_before) {
    uint64_t retired = eddy_load_acquire(&vm->retired);
    eddy_lock_acquire(&vm->submission);
    bool is_live = vm->issued != retired;
    eddy_lock_release(&vm->submission);
    if (is_live && retired == *retired_before && eddy_log_is_set())
        eddy_vm_dump(vm);
    *retired_before = retired;
}

static void scheduler_main(void *context) {
    eddy_vm *vm = context;
    eddy_float_environment_enter();
    int64_t spin_ns = SPIN_LEAST_NS;
    uint64_t retired_before = 0;
    while (!eddy_load_acquire(&vm->is_ending)) {
        if (eddy_load_acquire(&vm->is_halted))
            eddy_thread_park();
        int64_t deadline = vm->options.dump_after_ms > 0 ? eddy_clock_deadline(vm->options.dump_after_ms * 1000000)
                                                         : EDDY_SLEEP_FOREVER;
        if (!eddy_engine_has_work(vm) && !sleep_for_work(vm, deadline)) {
            watch_progress(vm, &retired_before);
            continue;
        }
        if (eddy_load_relaxed(&vm->engine_word) != 0 || !eddy_engine_request(vm)) {
            /* Somebody else has the role and will see the work; look again when there is more. */
            eddy_pause();
            continue;
        }
        int64_t begin = eddy_clock_ns();
        eddy_engine_work(vm, NULL, spin_ns);
        /* Stayed busy through the spin: worth spinning longer. */
        if (eddy_clock_ns() - begin > 2 * spin_ns)
            spin_ns = spin_ns < SPIN_MOST_NS / 2 ? 2 * spin_ns : SPIN_MOST_NS;
        else
            spin_ns = spin_ns > 2 * SPIN_LEAST_NS ? spin_ns / 2 : SPIN_LEAST_NS;
    }
}

void eddy_scheduler_start(eddy_vm *vm) {
    vm->has_scheduler = eddy_thread_create(&vm->scheduler, "eddy-scheduler", scheduler_main, vm) == EDDY_OK;
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
