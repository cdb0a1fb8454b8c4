/* The service thread: user code, one piece at a time, in order. Started when the first piece is accepted, when the call that needs it
 * can still be refused. In one-thread mode there is no such thread: calling threads run due items. */
#include <base/status.h>
#include <base/trace.h>
#include <string.h>
#include <vm/machine.h>
#include <vm/service.h>
#include <vm/submit.h>

typedef struct eddy_service {
    _Atomic uint64_t pushed; /* atomic: acq_rel; items ever pushed */
    eddy_sleep_word done;    /* atomic: seq_cst; items ever run (mod 2^32); waiters sleep on it */
    eddy_sleep_word signal;  /* atomic: seq_cst; incremented with every push */
    _Atomic bool is_ending;
    bool has_thread; /* lock: submission */
    _Atomic bool
        is_running; /* one-thread mode: atomic: seq_cst; a thread runs due items, one at a time */
    eddy_thread thread;
} eddy_service;

static __thread bool is_service_thread;

/* The child's only thread, even if it ran a callback in the parent, runs none of a runtime that the child makes. */
static void forget_callback(void) {
    is_service_thread = false;
}

bool eddy_service_is_current_thread(void) {
    return is_service_thread;
}

eddy_status eddy_service_create(eddy_vm *vm) {
    static _Atomic bool watches_forks; /* atomic: acq_rel; set once */
    if (!eddy_exchange_acq_rel(&watches_forks, true))
        eddy_process_at_fork_child(forget_callback);
    vm->service = eddy_memory_acquire_zeroed(sizeof(eddy_service), EDDY_MEMORY_RUNTIME);
    return vm->service ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

/* Runs all due items; returns their number. */
static uint32_t run_items(eddy_vm *vm) {
    eddy_service *service = vm->service;
    uint32_t count = 0;
    eddy_lifo_link *link = eddy_lifo_take_all_in_order(&vm->due);
    while (link) {
        eddy_service_item *item = (eddy_service_item *)(void *)link;
        link = link->next;
        eddy_trace_span span = EDDY_TRACE_BEGIN(CALLBACK, .op = "callback");
        item->run(item);
        EDDY_TRACE_END(span, .op = "callback");
        eddy_add_seq_cst(&service->done, 1u);
        eddy_sleep_wake_all(&service->done);
        count++;
    }
    return count;
}

static void service_main(void *context) {
    eddy_vm *vm = context;
    eddy_service *service = vm->service;
    is_service_thread = true;
    for (;;) {
        uint32_t signal = eddy_load_seq_cst(&service->signal);
        if (run_items(vm) > 0)
            continue;
        if (eddy_load_acquire(&service->is_ending))
            return;
        eddy_sleep_wait(&service->signal, signal, EDDY_CLOCK_FOREVER);
    }
}

eddy_status eddy_service_start(eddy_vm *vm, eddy_origin origin) {
    eddy_service *service = vm->service;
    if (vm->is_one_thread || service->has_thread)
        return EDDY_OK;
    service->has_thread =
        eddy_thread_create(&service->thread, "eddy-service", service_main, vm) == EDDY_OK;
    if (service->has_thread)
        return EDDY_OK;
    return eddy_fail(EDDY_INTERNAL, origin, "the system gives no thread to call back on");
}

void eddy_service_push(eddy_vm *vm, eddy_service_item *item) {
    eddy_service *service = vm->service;
    eddy_add_acq_rel(&service->pushed, (uint64_t)1);
    eddy_lifo_push(&vm->due, &item->link);
    eddy_add_seq_cst(&service->signal, 1u);
    eddy_sleep_wake_all(&service->signal);
}

void eddy_service_run_due(eddy_vm *vm) {
    eddy_service *service = vm->service;
    if (!eddy_service_has_due(vm) || is_service_thread)
        return;
    eddy_order_check();
    uint32_t signal;
    do {
        /* The thread that already runs user code runs this too: the code may want a lock that the caller holds. The check of the signal
         * that follows sees items that were pushed before the caller found it running. */
        if (eddy_exchange_seq_cst(&service->is_running, true))
            return;
        is_service_thread = true;
        do
            signal = eddy_load_seq_cst(&service->signal);
        while (run_items(vm) > 0);
        is_service_thread = false;
        eddy_store_seq_cst(&service->is_running, false);
    } while (eddy_load_seq_cst(&service->signal) != signal);
}

eddy_status eddy_service_sync(eddy_vm *vm, int64_t deadline_ns) {
    eddy_service *service = vm->service;
    if (is_service_thread)
        return EDDY_WOULD_DEADLOCK;
    uint32_t goal = (uint32_t)eddy_load_acquire(&service->pushed);
    for (;;) {
        eddy_service_run_due(vm);
        uint32_t done = eddy_load_seq_cst(&service->done);
        if ((int32_t)(done - goal) >= 0)
            return EDDY_OK;
        if (!eddy_sleep_wait(&service->done, done, deadline_ns) &&
            eddy_load_seq_cst(&service->done) == done)
            return EDDY_TIMED_OUT;
    }
}

bool eddy_service_destroy(eddy_vm *vm, int64_t deadline_ns) {
    eddy_service *service = vm->service;
    if (!service)
        return true;
    if (service->has_thread) {
        bool is_done = eddy_service_sync(vm, deadline_ns) == EDDY_OK;
        eddy_store_release(&service->is_ending, true);
        eddy_add_seq_cst(&service->signal, 1u);
        eddy_sleep_wake_all(&service->signal);
        if (!is_done)
            return false;
        eddy_thread_join(&service->thread);
    }
    eddy_service_run_due(vm);
    eddy_memory_release(service, sizeof(*service), EDDY_MEMORY_RUNTIME);
    vm->service = NULL;
    return true;
}
