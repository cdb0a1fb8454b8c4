#include <base/atomic.h>
#include <base/fork_gate.h>
#include <base/process.h>
#include <link.h>
#include <streams/cuda/backend.h>
#include <streams/cuda/question.h>

/* A handler stays for good. So many questions register one after each load of a library: what a library registers for its end comes with its load, and with what it does for the first time. */
#define HANDLERS_MOST 64

static _Atomic uint32_t handlers; /* atomic: relaxed; those since the last load */
static _Atomic uint64_t loads;    /* atomic: relaxed; loads before the last question */

static int read_loads(struct dl_phdr_info *info, size_t size, void *so_far) {
    (void)size;
    *(uint64_t *)so_far = info->dlpi_adds;
    return 1; /* each library says the same */
}

/* Libraries that the process has loaded so far. */
static uint64_t loads_so_far(void) {
    uint64_t so_far = 0;
    (void)dl_iterate_phdr(read_loads, &so_far);
    return so_far;
}

/* Questions of two devices may register one more or one less. */
static void register_handler(void) {
    uint64_t so_far = loads_so_far();
    if (eddy_load_relaxed(&loads) != so_far)
        eddy_store_relaxed(&handlers, 0u);
    eddy_store_relaxed(&loads, so_far);
    if (eddy_add_relaxed(&handlers, 1u) < HANDLERS_MOST)
        eddy_process_exit_first();
    else
        eddy_store_relaxed(&handlers, (uint32_t)HANDLERS_MOST);
}

void eddy_cuda_question_begin(eddy_backend *backend) {
    (void)eddy_cuda_backend_write_marks(backend);
    eddy_fork_gate_enter();
    eddy_cuda_backend_asks_set(backend, true);
}

void eddy_cuda_question_end(eddy_backend *backend) {
    register_handler();
    eddy_cuda_backend_asks_set(backend, false);
    eddy_fork_gate_leave();
}
