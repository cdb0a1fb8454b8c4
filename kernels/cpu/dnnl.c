/* The OpenMP runtime is the one that oneDNN has loaded. Its functions are looked up by name at run time, since a weak
 * reference would be resolved when the program is linked. */
#include <kernels/cpu/dnnl.h>

#include <base/assert.h>
#include <base/atomic.h>
#include <base/fork_gate.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

typedef int get_fn(void);
typedef void set_fn(int);

/* atomic: every thread that finds `is_looked_up` false stores the same values; release and acquire pair the flag with the
 * two pointers. */
static _Atomic(void *) openmp_get, openmp_set;
static _Atomic bool is_looked_up;

static bool openmp(get_fn **get, set_fn **set) {
    if (!eddy_load_acquire(&is_looked_up)) {
        eddy_store_relaxed(&openmp_get, dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
        eddy_store_relaxed(&openmp_set, dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
        eddy_store_release(&is_looked_up, true);
    }
    void *found_get = eddy_load_relaxed(&openmp_get), *found_set = eddy_load_relaxed(&openmp_set);
    /* ISO C has no conversion from an object pointer to a function pointer; POSIX guarantees that both have the same
     * representation. */
    memcpy(get, &found_get, sizeof(found_get));
    memcpy(set, &found_set, sizeof(found_set));
    return found_get != NULL && found_set != NULL;
}

int eddy_dnnl_begin(void) {
    get_fn *get;
    set_fn *set;
    eddy_fork_gate_enter();
    int before = openmp(&get, &set) ? get() : 1;
    if (before != 1)
        set(1);
    return before;
}

void eddy_dnnl_end(int before) {
    get_fn *get;
    set_fn *set;
    if (before != 1 && openmp(&get, &set))
        set(before);
    eddy_fork_gate_leave();
}

static pthread_once_t made = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* const after `made` */

static void make_engine(void) {
    int before = eddy_dnnl_begin();
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
    eddy_dnnl_end(before);
}

dnnl_engine_t eddy_dnnl_engine(void) {
    pthread_once(&made, make_engine);
    return engine;
}

/* The library allocates some 20 MB at most, and threads that start meanwhile may map a malloc arena of 64 MB. */
#define ROOM_BYTES ((size_t)96 << 20)

/* Memory that is mapped but never touched needs no pages, but it counts against the limits of the process, which this call
 * tests. */
bool eddy_dnnl_has_room(void) {
    void *room = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    munmap(room, ROOM_BYTES);
    return true;
}

/* The library may skip an implementation that lacks memory, and take the next one or none. So an answer is reliable only
 * if there is room. Every other failure is final, e.g. if the system forbids executable pages. */
eddy_status eddy_dnnl_made(dnnl_status_t status) {
    if (status == dnnl_success)
        return EDDY_OK;
    return status == dnnl_out_of_memory || !eddy_dnnl_has_room() ? EDDY_OUT_OF_MEMORY
                                                                 : EDDY_UNSUPPORTED;
}

bool eddy_dnnl_start_once(eddy_dnnl_start *start, void (*make)(void)) {
    if (EDDY_LIKELY(eddy_load_acquire(&start->is_done)))
        return false;
    pthread_once(&start->once, make);
    eddy_store_release(&start->is_done, true);
    return true;
}

bool eddy_dnnl_turn_begin(eddy_dnnl_turn *turn) {
    turn->before = eddy_dnnl_begin();
    turn->stream = NULL;
    return dnnl_stream_create(&turn->stream, eddy_dnnl_engine(), dnnl_stream_in_order) ==
           dnnl_success;
}

void eddy_dnnl_turn_end(eddy_dnnl_turn *turn) {
    if (turn->stream)
        dnnl_stream_destroy(turn->stream);
    eddy_dnnl_end(turn->before);
}

void eddy_dnnl_give(eddy_dnnl_call *call, int name, const eddy_dnnl_desc *desc, void *data) {
    dnnl_memory_t memory = NULL;
    if (call->is_good && eddy_dnnl_memory(desc, eddy_dnnl_engine(), data, &memory))
        call->arguments[call->count++] = (dnnl_exec_arg_t){name, memory};
    else
        call->is_good = false;
}

bool eddy_dnnl_execute(eddy_dnnl_call *call, dnnl_primitive_t primitive,
                       const eddy_dnnl_turn *turn) {
    bool is_good = call->is_good && dnnl_primitive_execute(primitive, turn->stream, call->count,
                                                           call->arguments) == dnnl_success;
    for (int i = 0; i < call->count; i++)
        dnnl_memory_destroy(call->arguments[i].memory);
    return is_good;
}
