/* The service thread: user code, one piece at a time, in order. Made when the first piece is due. */
#include <base/status.h>
#include <string.h>
#include <vm/machine.h>

/* Started under `life`:  NONE --(first item)--> RUNNING --(destroy)--> NONE;  NONE --(no thread to be had)--> ON_CALLER */
typedef struct eddy_service {
    eddy_stack items;         /* eddy_service_item, newest first */
    _Atomic uint64_t pushed;  /* atomic: acq_rel; items ever pushed */
    eddy_sleep_word done;     /* atomic: seq_cst; items ever run (mod 2^32); waiters sleep on it */
    eddy_sleep_word signal;   /* atomic: seq_cst; bumped with every push */
    _Atomic bool is_ending;
    eddy_lock life;
    bool has_thread;          /* lock: life */
    _Atomic bool is_on_caller; /* atomic: no thread; who calls runs what is due */
    eddy_lock running;        /* one-thread mode: one piece at a time */
    eddy_thread thread;
} eddy_service;

static __thread bool is_service_thread;

bool eddy_service_is_current_thread(void) {
    return is_service_thread;
}

eddy_status eddy_service_create(eddy_vm *vm) {
    vm->service = eddy_memory_acquire_zeroed(sizeof(eddy_service), EDDY_MEMORY_RUNTIME);
    if (!vm->service)
        return EDDY_OUT_OF_MEMORY;
    eddy_store_relaxed(&vm->service->is_on_caller, vm->is_one_thread);
    return EDDY_OK;
}

/* Runs everything that is there; the number of items. */
static uint32_t run_items(eddy_service *service) {
    uint32_t count = 0;
    eddy_stack_link *link = eddy_stack_take_all_in_order(&service->items);
    while (link) {
        eddy_service_item *item = (eddy_service_item *)(void *)link;
        link = link->next;
        item->run(item);
        eddy_add_seq_cst(&service->done, 1u);
        eddy_sleep_wake_all(&service->done);
        count++;
    }
    return count;
}

static void service_main(void *context) {
    eddy_service *service = context;
    is_service_thread = true;
    for (;;) {
        uint32_t signal = eddy_load_seq_cst(&service->signal);
        if (run_items(service) > 0)
            continue;
        if (eddy_load_acquire(&service->is_ending))
            return;
        eddy_sleep_wait(&service->signal, signal, EDDY_SLEEP_FOREVER);
    }
}

static void start(eddy_vm *vm) {
    eddy_service *service = vm->service;
    eddy_lock_acquire(&service->life);
    if (!service->has_thread && !eddy_load_relaxed(&service->is_on_caller)) {
        service->has_thread = eddy_thread_create(&service->thread, "eddy-service", service_main, service) == EDDY_OK;
        if (!service->has_thread)
            eddy_store_release(&service->is_on_caller, true);
    }
    eddy_lock_release(&service->life);
}

void eddy_service_push(eddy_vm *vm, eddy_service_item *item) {
    eddy_service *service = vm->service;
    if (eddy_add_acq_rel(&service->pushed, (uint64_t)1) == 0)
        start(vm);
    eddy_stack_push(&service->items, &item->link);
    eddy_add_seq_cst(&service->signal, 1u);
    eddy_sleep_wake_all(&service->signal);
}

bool eddy_service_has_due(eddy_vm *vm) {
    return eddy_load_relaxed(&vm->service->is_on_caller) && !eddy_stack_is_empty(&vm->service->items);
}

void eddy_service_run_due(eddy_vm *vm) {
    eddy_service *service = vm->service;
    if (!eddy_service_has_due(vm) || is_service_thread)
        return;
    eddy_lock_acquire(&service->running);
    is_service_thread = true;
    while (run_items(service) > 0) {
    }
    is_service_thread = false;
    eddy_lock_release(&service->running);
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
        if (!eddy_sleep_wait(&service->done, done, deadline_ns) && eddy_load_seq_cst(&service->done) == done)
            return EDDY_TIMED_OUT;
    }
}

void eddy_service_destroy(eddy_vm *vm) {
    eddy_service *service = vm->service;
    if (!service)
        return;
    if (service->has_thread) {
        eddy_store_release(&service->is_ending, true);
        eddy_add_seq_cst(&service->signal, 1u);
        eddy_sleep_wake_all(&service->signal);
        eddy_thread_join(&service->thread);
    }
    eddy_service_run_due(vm);
    eddy_memory_release(service, sizeof(*service), EDDY_MEMORY_RUNTIME);
    vm->service = NULL;
}
