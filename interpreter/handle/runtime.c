#include <interpreter/handle/runtime.h>

#include <base/memory.h>
#include <base/nvtx.h>
#include <base/option.h>
#include <base/options.h>
#include <base/process.h>
#include <base/sleep.h>
#include <base/status.h>
#include <base/unseen.h>
#include <interpreter/call/fast_op.h>
#include <interpreter/call/finite.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/generator.h>
#include <interpreter/handle/log.h>
#include <interpreter/handle/shape_table.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/handle/trace.h>
#include <interpreter/host/host.h>
#include <interpreter/tape/overwritten.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/team.h>
#include <string.h>
#include <trace/times.h>

/* The longest waits of exit: for issued work to finish, then for running kernels to stop. */
#define EXIT_DRAIN_NS INT64_C(700000000)
#define EXIT_HALT_NS INT64_C(300000000)

static struct {
    eddy_lock lock;
    eddy_runtime *first; /* lock: lock; those that have not been freed */
    uint64_t last_id;    /* lock: lock */
    bool has_hooks;      /* lock: lock; at exit and fork */
    bool is_exiting;     /* lock: lock; none is made any more */
    bool
        is_silent; /* lock: lock; a runtime was set to print nothing at exit; then errors of calls are not printed either */
    eddy_lock starting; /* held while the default runtime starts */
    _Atomic(eddy_runtime *)
        standard; /* atomic: the default one; stored (release) under `starting` */
} runtimes;

/* ---- memory ---- */

void eddy_runtime_bind(eddy_runtime *runtime) {
    eddy_add_relaxed(&runtime->bindings, 1);
}

static void unlist(eddy_runtime *runtime) {
    eddy_lock_acquire(&runtimes.lock);
    for (eddy_runtime **place = &runtimes.first; *place; place = &(*place)->next)
        if (*place == runtime) {
            *place = runtime->next;
            break;
        }
    eddy_lock_release(&runtimes.lock);
}

void eddy_runtime_unbind(eddy_runtime *runtime) {
    if (eddy_sub_acq_rel(&runtime->bindings, 1) != 1)
        return;
    unlist(runtime);
    eddy_runtime_cache *programs = eddy_load_acquire(&runtime->programs);
    if (programs)
        programs->destroy(programs);
    eddy_vm_destroy(runtime->vm);
    eddy_memory_release(runtime, sizeof(*runtime), EDDY_MEMORY_RUNTIME);
}

static int64_t trim_programs(const eddy_runtime *runtime) {
    eddy_runtime_cache *programs = eddy_load_acquire(&runtime->programs);
    return programs ? programs->trim(programs) : 0;
}

bool eddy_runtime_exists(uint64_t id) {
    bool is_there = false;
    if (id == 0)
        return false;
    eddy_lock_acquire(&runtimes.lock);
    for (const eddy_runtime *runtime = runtimes.first; runtime && !is_there;
         runtime = runtime->next)
        is_there = runtime->id == id && eddy_runtime_is_running(runtime);
    eddy_lock_release(&runtimes.lock);
    return is_there;
}

/* ---- exit and fork ---- */

/* Unseen errors, of calls and late ones. */
typedef struct untold {
    uint64_t count;
    eddy_error first;
} untold;

/* The runtime's remaining work gets its time; then its late errors are known. */
static void drain(const eddy_runtime *runtime, int64_t deadline, untold *errors) {
    eddy_vm_wait wait = {eddy_clock_left(deadline), {"exit", NULL}};
    eddy_error late = {0};
    (void)!eddy_vm_sync(runtime->vm, &wait, &late);
    if (late.status == EDDY_OK || runtime->is_silent)
        return;
    if (errors->first.status == EDDY_OK)
        errors->first = late;
    errors->count += late.more + 1;
}

/* No code of ours may run while the libraries behind the kernels end: threads stop between two slices. This includes runtimes
 * that were shut down, since an abandoned one may still run. */
static void halt(void) {
    int64_t deadline = eddy_clock_deadline(EXIT_HALT_NS);
    eddy_lock_acquire(&runtimes.lock);
    for (eddy_runtime *runtime = runtimes.first; runtime; runtime = runtime->next)
        if (eddy_load_acquire(&runtime->state) != EDDY_RUNTIME_FORKED)
            eddy_vm_halt(runtime->vm, deadline);
    eddy_lock_release(&runtimes.lock);
    eddy_team_halt(deadline);
}

/* New calls are refused, work in flight gets its time, and nothing is freed: other threads may still run. */
static void at_exit(void) {
    eddy_runtime *exiting = NULL;
    eddy_lock_acquire(&runtimes.lock);
    bool is_first = !runtimes.is_exiting, is_silent = runtimes.is_silent;
    runtimes.is_exiting = true;
    for (eddy_runtime *runtime = is_first ? runtimes.first : NULL; runtime;
         runtime = runtime->next) {
        uint32_t running = EDDY_RUNTIME_RUNNING;
        if (!eddy_cas_acq_rel(&runtime->state, &running, EDDY_RUNTIME_EXITING))
            continue;
        eddy_add_relaxed(&runtime->bindings,
                         1); /* for good: nothing may be freed under the loop below */
        runtime->exit_next = exiting;
        exiting = runtime;
    }
    eddy_lock_release(&runtimes.lock);
    if (!is_first)
        return;
    untold errors = {0};
    errors.count =
        eddy_unseen_count(&errors.first); /* before draining, which fills this thread's slot */
    if (is_silent)
        errors = (untold){0};
    int64_t deadline = eddy_clock_deadline(EXIT_DRAIN_NS);
    for (eddy_runtime *runtime = exiting; runtime; runtime = runtime->exit_next)
        drain(runtime, deadline, &errors);
    eddy_unseen_tell(errors.count, errors.first.status != EDDY_OK ? errors.first.message : NULL);
    halt();
    eddy_log_exit();
    eddy_trace_exit();
}

void eddy_runtime_exit_first(void) {
    eddy_unseen_leave();
    eddy_process_at_exit(at_exit);
}

static void at_fork_child(void) {
    runtimes.lock = runtimes.starting = (eddy_lock){0};
    runtimes.is_exiting = false;
    for (eddy_runtime *runtime = runtimes.first; runtime; runtime = runtime->next)
        eddy_store_release(&runtime->state, EDDY_RUNTIME_FORKED);
    eddy_store_release(&runtimes.standard, NULL);
    eddy_error_fork_child();
    eddy_caller_fork_child();
    eddy_tensor_fork_child();
    eddy_shape_table_fork_child();
    eddy_fast_ops_fork_child();
    eddy_generator_fork_child();
    eddy_host_fork_child();
    eddy_runtime_devices_fork_child();
    eddy_overwritten_fork_child();
}

void eddy_runtime_watch_exit(void) {
    eddy_lock_acquire(&runtimes.lock);
    bool needs_hooks = !runtimes.is_exiting && !runtimes.has_hooks;
    runtimes.has_hooks |= needs_hooks;
    eddy_lock_release(&runtimes.lock);
    if (needs_hooks) {
        eddy_runtime_exit_first();
        eddy_process_at_fork_child(at_fork_child);
    }
}

bool eddy_runtime_each(void (*visit)(eddy_runtime *runtime, void *context), void *context) {
    /* Whoever has it may be waiting for what the visitor does. */
    if (!eddy_lock_try(&runtimes.lock))
        return false;
    for (eddy_runtime *runtime = runtimes.first; runtime; runtime = runtime->next)
        visit(runtime, context);
    eddy_lock_release(&runtimes.lock);
    return true;
}

/* ---- life ---- */

/* The message names the field or the variable alone, as those of other options do: it is the first call's that needs a runtime. */
static eddy_status choose_passes(const eddy_runtime_options *given,
                                 const eddy_runtime_options *resolved, uint32_t *passes) {
    const char *from = EDDY_OPTION(given, passes) ? "passes" : "EDDY_PASSES";
    return eddy_runtime_parse_passes(resolved->passes, from, (eddy_origin){NULL, NULL}, passes);
}

static eddy_status choose_device(const eddy_runtime_options *given,
                                 const eddy_runtime_options *resolved, eddy_device *device) {
    if (eddy_runtime_device_named(resolved->device, device))
        return EDDY_OK;
    return eddy_fail(EDDY_INVALID_ARGUMENT, (eddy_origin){NULL, NULL},
                     "%s is %.40s, no device; \"cpu\", \"far\" and \"cuda:1\" are",
                     EDDY_OPTION(given, device) ? "device" : "EDDY_DEVICE", resolved->device);
}

static eddy_status keep_folder(eddy_runtime *runtime, const char *folder) {
    size_t length = strlen(folder);
    if (length >= sizeof(runtime->cache_dir))
        return eddy_fail(EDDY_INVALID_ARGUMENT, (eddy_origin){NULL, NULL},
                         "cache_dir has %zu bytes, and may have %zu", length,
                         sizeof(runtime->cache_dir) - 1);
    memcpy(runtime->cache_dir, folder, length + 1);
    return EDDY_OK;
}

static eddy_status init(eddy_runtime *runtime, const eddy_runtime_options *given) {
    eddy_runtime_options options;
    eddy_status status = eddy_options_resolve(given, &options);
    if (status != EDDY_OK)
        return status;
    status = choose_device(given, &options, &runtime->device);
    if (status != EDDY_OK)
        return status;
    status = eddy_options_choose_isa(given, &options);
    if (status == EDDY_OK)
        status = choose_passes(given, &options, &runtime->passes);
    if (status == EDDY_OK)
        status = keep_folder(runtime, options.cache_dir);
    if (status != EDDY_OK)
        return status;
    /* Who looks at each op's result wants all ops. */
    runtime->allows_passes = !options.checks_finite;
    if (!runtime->allows_passes)
        runtime->passes = 0;
    if (options.memory_limit > 0)
        eddy_memory_limit_set(options.memory_limit);
    if (!eddy_fast_ops_init())
        return eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){"runtime_create", NULL},
                         "no memory for the table of kernels");
    if (options.checks_finite)
        eddy_finite_ask(options.checks_nan ? EDDY_FINITE_NAN : EDDY_FINITE_ALL);
    status =
        options.takes_times ? eddy_times_begin((eddy_origin){"runtime_create", NULL}) : EDDY_OK;
    if (status == EDDY_OK)
        status = eddy_log_look(given, &options);
    if (status == EDDY_OK)
        status = eddy_trace_look(&options);
    if (status == EDDY_OK)
        status = eddy_vm_create(&options, &runtime->vm);
    if (status != EDDY_OK)
        return status;
    eddy_store_relaxed(&runtime->seed, (uint64_t)options.seed);
    eddy_store_relaxed(&runtime->epoch, (uint64_t)1);
    runtime->is_silent = options.exits_silently;
    runtime->program_cache_bytes = options.program_cache_bytes;
    runtime->program_streams = (int32_t)options.program_streams;
    runtime->device_options =
        (eddy_backend_options){.allows_tf32 = options.allows_tf32,
                               .allows_rounded_weights = options.allows_rounded_weights};
    runtime->captures_graphs = options.captures_graphs && runtime->allows_passes;
    runtime->uses_one_thread = options.uses_one_thread;
    eddy_store_relaxed(&runtime->references, 1);
    eddy_store_relaxed(&runtime->bindings, 1);
    return EDDY_OK;
}

static eddy_status create(const eddy_runtime_options *options, eddy_origin origin,
                          eddy_runtime **created) {
    eddy_nvtx_look();
    eddy_runtime *runtime = eddy_memory_acquire_zeroed(sizeof(*runtime), EDDY_MEMORY_RUNTIME);
    if (!runtime)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    eddy_status status = init(runtime, options);
    if (status != EDDY_OK) {
        eddy_memory_release(runtime, sizeof(*runtime), EDDY_MEMORY_RUNTIME);
        return status;
    }
    eddy_lock_acquire(&runtimes.lock);
    bool is_late = runtimes.is_exiting;
    if (!is_late) {
        runtime->id = ++runtimes.last_id;
        runtime->next = runtimes.first;
        runtimes.first = runtime;
        runtimes.is_silent |= runtime->is_silent;
    }
    eddy_lock_release(&runtimes.lock);
    if (is_late) {
        (void)!eddy_vm_close(runtime->vm, EDDY_FOREVER);
        eddy_vm_destroy(runtime->vm);
        eddy_memory_release(runtime, sizeof(*runtime), EDDY_MEMORY_RUNTIME);
        return eddy_fail(EDDY_SHUT_DOWN, origin, "the process is exiting");
    }
    eddy_runtime_watch_exit();
    *created = runtime;
    return EDDY_OK;
}

eddy_runtime *eddy_runtime_create(const eddy_runtime_options *options) {
    eddy_origin origin = EDDY_ORIGIN("runtime_create");
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller)) {
        (void)!eddy_caller_refuse(caller, origin);
        return NULL;
    }
    eddy_runtime *runtime = NULL;
    (void)!create(options, origin, &runtime);
    return runtime;
}

eddy_runtime *eddy_runtime_retain(eddy_runtime *runtime) {
    if (runtime)
        eddy_add_relaxed(&runtime->references, 1);
    return runtime;
}

/* Cached handles need not keep the remains of the runtime. */
static void unbind_cached(eddy_caller *caller, eddy_runtime *runtime) {
    for (eddy_tensor *tensor = caller ? caller->free_handles : NULL; tensor;
         tensor = (eddy_tensor *)tensor->link.link.next)
        if (tensor->runtime == runtime) {
            tensor->runtime = NULL;
            eddy_runtime_unbind(runtime);
        }
}

static eddy_status shut_down(eddy_runtime *runtime, int64_t timeout) {
    uint32_t running = EDDY_RUNTIME_RUNNING;
    /* Also if another thread has begun: both return at the same time. */
    if (!eddy_cas_acq_rel(&runtime->state, &running, EDDY_RUNTIME_SHUT_DOWN) &&
        running != EDDY_RUNTIME_SHUT_DOWN)
        return EDDY_OK;
    eddy_status status = eddy_vm_close(runtime->vm, timeout);
    if (status == EDDY_SHUT_DOWN)
        return EDDY_OK;
    unbind_cached(eddy_caller_self, runtime);
    (void)trim_programs(runtime);
    return status;
}

void eddy_runtime_release(eddy_runtime **runtime) {
    eddy_runtime *released = runtime ? *runtime : NULL;
    if (!released)
        return;
    *runtime = NULL;
    if (eddy_sub_acq_rel(&released->references, 1) != 1)
        return;
    if (eddy_caller_self && (eddy_caller_self->callback != EDDY_CALLBACK_NONE ||
                             eddy_host_has_lend(released, eddy_caller_self->thread)))
        return; /* a wait would never end here: it runs on until exit */
    shut_down(released, EDDY_FOREVER);
    eddy_runtime_unbind(released);
}

eddy_status eddy_runtime_shutdown(eddy_runtime *runtime, int64_t timeout) {
    eddy_origin origin = EDDY_ORIGIN("runtime_shutdown");
    if (!runtime)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the runtime is NULL");
    if (eddy_caller_self && eddy_caller_self->callback != EDDY_CALLBACK_NONE)
        return eddy_fail(EDDY_WOULD_DEADLOCK, origin,
                         "a callback of the runtime would wait for itself");
    if (eddy_load_acquire(&runtime->state) == EDDY_RUNTIME_FORKED)
        return eddy_runtime_refuse(runtime, origin, "");
    if (timeout == EDDY_FOREVER && eddy_caller_self &&
        eddy_host_has_lend(runtime, eddy_caller_self->thread))
        return eddy_fail(EDDY_WOULD_DEADLOCK, origin,
                         "the calling thread has mapped or borrowed a tensor of the runtime: first "
                         "eddy_unmap or eddy_lend_end");
    eddy_status status = shut_down(runtime, timeout);
    if (status != EDDY_OK)
        eddy_fail(status, origin, "%s", eddy_status_text(status));
    return status;
}

bool eddy_runtime_is_exiting(void) {
    eddy_lock_acquire(&runtimes.lock);
    bool is_exiting = runtimes.is_exiting;
    eddy_lock_release(&runtimes.lock);
    return is_exiting;
}

/* ---- current ---- */

static eddy_status start_default(const void *address, eddy_runtime **runtime) {
    *runtime = eddy_load_acquire(&runtimes.standard);
    if (EDDY_LIKELY(*runtime != NULL))
        return EDDY_OK;
    eddy_status status = EDDY_OK;
    eddy_lock_acquire(&runtimes.starting);
    *runtime = eddy_load_relaxed(&runtimes.standard);
    if (!*runtime)
        status = create(NULL, (eddy_origin){"runtime_create", address}, runtime);
    if (status == EDDY_OK)
        eddy_store_release(&runtimes.standard, *runtime);
    eddy_lock_release(&runtimes.starting);
    return status;
}

eddy_status eddy_runtime_of_caller(eddy_caller *caller, eddy_origin origin,
                                   eddy_runtime **runtime) {
    if (EDDY_UNLIKELY(!eddy_caller_may_call(caller)))
        return eddy_caller_refuse(caller, origin);
    *runtime = caller->runtime;
    return EDDY_UNLIKELY(*runtime != NULL) ? EDDY_OK : start_default(origin.address, runtime);
}

eddy_runtime *eddy_runtime_current(void) {
    eddy_runtime *runtime = NULL;
    (void)!eddy_runtime_of_caller(eddy_caller_get(), EDDY_ORIGIN("runtime_current"), &runtime);
    return runtime;
}

eddy_status eddy_runtime_use(eddy_runtime *runtime) {
    eddy_origin origin = EDDY_ORIGIN("runtime_use");
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_runtime *before = caller->runtime;
    caller->runtime = eddy_runtime_retain(runtime);
    eddy_runtime_release(&before);
    return EDDY_OK;
}

eddy_status eddy_runtime_refuse(const eddy_runtime *runtime, eddy_origin origin,
                                const char *detail) {
    eddy_status status = eddy_runtime_status(runtime);
    return eddy_fail(status, origin, "%s%s%s%s", eddy_status_text(status), *detail ? " (" : "",
                     detail, *detail ? ")" : "");
}

/* ---- waiting ---- */

eddy_status eddy_runtime_running(eddy_origin origin, eddy_runtime **runtime) {
    eddy_status status = eddy_runtime_of_caller(eddy_caller_get(), origin, runtime);
    if (status == EDDY_OK && !eddy_runtime_is_running(*runtime))
        status = eddy_runtime_refuse(*runtime, origin, "");
    return status;
}

eddy_status eddy_sync(int64_t timeout) {
    eddy_origin origin = EDDY_ORIGIN("sync");
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_running(origin, &runtime);
    eddy_vm_wait wait = {timeout, origin};
    if (status != EDDY_OK)
        return status;
    eddy_pending_release_flush_all(eddy_caller_get(), runtime);
    return eddy_vm_sync(runtime->vm, &wait, NULL);
}

eddy_status eddy_sync_deleters(int64_t timeout) {
    eddy_origin origin = EDDY_ORIGIN("sync_deleters");
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_running(origin, &runtime);
    eddy_vm_wait wait = {timeout, origin};
    return status == EDDY_OK ? eddy_vm_sync_service(runtime->vm, &wait) : status;
}

/* The storages of a list whose tensors are all of one runtime. */
static eddy_status gather(eddy_list tensors, eddy_storage_number *storages, eddy_runtime **runtime,
                          eddy_origin origin) {
    for (int64_t i = 0; i < tensors.count; i++) {
        const eddy_tensor *tensor = tensors.items[i];
        eddy_status status = eddy_tensor_check_item(tensor, "tensors", i, origin);
        if (status != EDDY_OK)
            return status;
        if (*runtime && tensor->runtime != *runtime)
            return eddy_fail(EDDY_RUNTIME_MISMATCH, origin,
                             "tensor %lld belongs to another runtime than tensor 0", (long long)i);
        *runtime = tensor->runtime;
        storages[i] = tensor->storage;
    }
    return EDDY_OK;
}

eddy_status eddy_recover(eddy_list tensors) {
    eddy_origin origin = EDDY_ORIGIN("recover");
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    if (tensors.count == 0)
        return EDDY_OK;
    if (tensors.count < 0 || !tensors.items || tensors.count > INT32_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the list is broken");
    eddy_status may_recover = eddy_recorder_refuse(
        caller, "no run would do it again: recover before the recording, or after it", origin);
    if (may_recover != EDDY_OK)
        return may_recover;
    size_t bytes = (size_t)tensors.count * sizeof(eddy_storage_number);
    eddy_storage_number *storages = eddy_caller_scratch_begin(caller, bytes);
    if (!storages)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the list");
    eddy_runtime *runtime = NULL;
    eddy_status status = gather(tensors, storages, &runtime, origin);
    if (status == EDDY_OK && !eddy_runtime_is_running(runtime))
        status = eddy_runtime_refuse(runtime, origin, "");
    if (status == EDDY_OK)
        status = eddy_vm_recover(runtime->vm, storages, tensors.count, origin);
    eddy_caller_scratch_end(caller, storages, bytes);
    return status;
}

/* ---- threads, memory, dumps ---- */

int32_t eddy_thread_count(void) {
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_running(EDDY_ORIGIN("thread_count"), &runtime);
    return status == EDDY_OK ? eddy_vm_thread_count(runtime->vm) : 0;
}

int64_t eddy_trim(void) {
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_running(EDDY_ORIGIN("trim"), &runtime);
    return status == EDDY_OK ? eddy_caller_trim(eddy_caller_self) + trim_programs(runtime) +
                                   eddy_vm_trim(runtime->vm)
                             : 0;
}

eddy_status eddy_dump(void) {
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_running(EDDY_ORIGIN("dump"), &runtime);
    if (status == EDDY_OK)
        eddy_vm_dump(runtime->vm);
    return status;
}

int eddy_dump_dot(char *buffer, size_t size) {
    eddy_origin origin = EDDY_ORIGIN("dump_dot");
    eddy_runtime *runtime;
    size_t length;
    if (size > 0 && !buffer) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the text");
        return -1;
    }
    if (eddy_runtime_running(origin, &runtime) != EDDY_OK)
        return -1;
    if (!eddy_vm_dump_dot(runtime->vm, buffer, size, &length)) {
        eddy_fail(EDDY_TIMED_OUT, origin, "the thread that orders instructions runs one");
        return -1;
    }
    return (int)length;
}
