#include <base/float_environment.h>
#include <base/memory.h>
#include <base/thread.h>
#include <stddef.h>
#include <streams/doorbell.h>
#include <streams/launcher.h>

/* Lines by who writes: others read them for each work. */
typedef struct launcher {
    eddy_work_queue base;
    bool has_thread;         /* const after init */
    eddy_launcher_duty duty; /* const after init */
    eddy_thread thread;
    /* atomic: the work sets (release), the VM clears (release); any thread loads (acquire) */
    _Atomic bool is_stalled;
    _Atomic bool is_ending; /* atomic: release; seen after a ring */

    /* The engine pushes; who launches takes. */
    eddy_lifo dispatched __attribute__((aligned(EDDY_CACHE_LINE)));

    /* Rung after there was nothing dispatched and is: who launches takes all of it, and asks for the number of rings before it looks (vm/model/doorbell.pml). */
    eddy_doorbell bell __attribute__((aligned(EDDY_CACHE_LINE)));

    /* By the thread that launches, or without one by the thread that dispatches. */
    eddy_work *taken
        __attribute__((aligned(EDDY_CACHE_LINE))); /* in order, ahead of what is dispatched */
    bool is_inside;                                /* without a thread: a work runs */
} launcher;

_Static_assert(offsetof(eddy_work, link) == 0, "a link is the address of its work");

static eddy_work *take(launcher *from) {
    if (!from->taken && !eddy_lifo_is_empty(&from->dispatched))
        from->taken = (eddy_work *)(void *)eddy_lifo_take_all_in_order(&from->dispatched);
    eddy_work *work = from->taken;
    if (work)
        from->taken = work->next;
    return work;
}

/* Whether it has run one. A work that has not stalled may be gone: it is not looked at. */
static bool run_one(launcher *from) {
    if (eddy_load_acquire(&from->is_stalled))
        return false;
    eddy_work *work = take(from);
    if (!work)
        return false;
    work->run(work, EDDY_OK);
    return true;
}

static void sleep_until_rung(launcher *self, uint32_t seen) {
    const eddy_launcher_duty *duty = &self->duty;
    if (duty->attend && !duty->rest(duty->context, &self->base))
        return;
    eddy_doorbell_sleep(&self->bell, seen, EDDY_CLOCK_FOREVER);
    if (duty->attend)
        duty->wake(duty->context);
}

static void launcher_main(void *context) {
    launcher *self = context;
    const eddy_launcher_duty *duty = &self->duty;
    eddy_float_environment_enter();
    if (duty->attend)
        duty->wake(duty->context);
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&self->bell);
        if (run_one(self))
            continue;
        if (eddy_load_acquire(&self->is_ending))
            return;
        if (duty->attend && duty->attend(duty->context, &self->base))
            continue;
        if (!eddy_doorbell_spin_until(&self->bell, seen, duty->has_work, duty->context))
            sleep_until_rung(self, seen);
    }
}

/* Works that a work dispatches run after it, not inside of it. */
static void run_inside(launcher *self) {
    if (self->is_inside)
        return;
    self->is_inside = true;
    while (run_one(self))
        ;
    self->is_inside = false;
}

static void dispatch(eddy_work_queue *base, eddy_work *work) {
    launcher *self = (launcher *)(void *)base;
    bool was_empty = eddy_lifo_push(&self->dispatched, &work->link);
    if (!self->has_thread)
        run_inside(self);
    else if (was_empty)
        eddy_doorbell_ring(&self->bell);
}

static void destroy(eddy_work_queue *base) {
    launcher *self = (launcher *)(void *)base;
    if (self->has_thread) {
        eddy_store_release(&self->is_ending, true);
        eddy_doorbell_ring(&self->bell);
        eddy_thread_join(&self->thread);
    }
    eddy_memory_release(self, sizeof(*self), EDDY_MEMORY_RUNTIME);
}

static const eddy_work_queue_class launcher_class = {"launcher", dispatch, destroy};

eddy_work_queue *eddy_launcher_create(bool has_thread, eddy_launcher_duty duty) {
    launcher *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return NULL;
    made->base.class = &launcher_class;
    made->base.is_ordered = true;
    made->has_thread = has_thread;
    made->duty = duty;
    if (has_thread &&
        eddy_thread_create(&made->thread, "eddy-launcher", launcher_main, made) != EDDY_OK) {
        eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_RUNTIME);
        return NULL;
    }
    return &made->base;
}

void eddy_launcher_stall(eddy_work_queue *queue, eddy_work *work) {
    launcher *self = (launcher *)(void *)queue;
    work->next = self->taken;
    self->taken = work;
    eddy_store_release(&self->is_stalled, true);
}

bool eddy_launcher_has_next(const eddy_work_queue *queue) {
    const launcher *self = (const launcher *)(const void *)queue;
    return !eddy_load_acquire(&self->is_stalled) &&
           (self->taken || !eddy_lifo_is_empty(&self->dispatched));
}

bool eddy_launcher_is_stalled(const eddy_work_queue *queue) {
    return eddy_load_acquire(&((const launcher *)(const void *)queue)->is_stalled);
}

void eddy_launcher_resume(eddy_work_queue *queue) {
    launcher *self = (launcher *)(void *)queue;
    eddy_store_release(&self->is_stalled, false);
    if (self->has_thread)
        eddy_doorbell_ring(&self->bell);
    else
        run_inside(self);
}

/* Who launches touches neither list while it is stalled. */
eddy_work *eddy_launcher_works(eddy_work_queue *queue) {
    launcher *self = (launcher *)(void *)queue;
    EDDY_ASSERT(eddy_load_acquire(&self->is_stalled));
    eddy_work *last = self->taken;
    while (last->next)
        last = last->next;
    if (!eddy_lifo_is_empty(&self->dispatched))
        last->next = (eddy_work *)(void *)eddy_lifo_take_all_in_order(&self->dispatched);
    return self->taken;
}

void eddy_launcher_take_back(eddy_work_queue *queue) {
    launcher *self = (launcher *)(void *)queue;
    EDDY_ASSERT(eddy_load_acquire(&self->is_stalled) && eddy_lifo_is_empty(&self->dispatched));
    self->taken = NULL;
    eddy_store_release(&self->is_stalled, false);
}
