/* Preloaded, it runs each primitive of oneDNN twice: on copies of its operands that end at a page nobody may touch, and on copies that begin behind one. What is accessed beyond an operand ends
 * the process; both times the same has to be written. The library's code is made while it runs, so that no sanitizer sees what it accesses. */
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *operand_desc;
#else
typedef const_dnnl_memory_desc_t operand_desc;
#endif
typedef dnnl_status_t execute_fn(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                 const dnnl_exec_arg_t *arguments);

#define OPERANDS_MOST 8
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

enum { AT_END, AT_BEGIN, WAYS };

/* Of each way a copy, between two pages that nobody may touch. */
typedef struct operand {
    int name;     /* DNNL_ARG_... */
    char *from;   /* the caller's */
    char *before; /* what was there */
    size_t bytes; /* from its first element to its last */
    char *pages[WAYS], *data[WAYS];
} operand;

/* What the thread runs. */
static _Thread_local operand operands[OPERANDS_MOST];
static _Thread_local int operand_count, way;
static _Thread_local const char *implementation = "oneDNN";

/* ---- what is found ---- */

static size_t pages_bytes(const operand *o) {
    return (o->bytes + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
}

static void say_where(int signal_number, siginfo_t *info, void *context) {
    (void)context;
    const char *at = info->si_addr;
    char text[256];
    for (int i = 0; i < operand_count; i++) {
        const operand *o = &operands[i];
        if (at < o->pages[way] || at >= o->pages[way] + pages_bytes(o))
            continue;
        snprintf(text, sizeof(text), "%s: operand %d of %zu bytes: an access at byte %td\n",
                 implementation, o->name, o->bytes, at - o->data[way]);
        if (write(STDERR_FILENO, text, strlen(text)) < 0)
            break;
    }
    signal(signal_number, SIG_DFL);
}

__attribute__((constructor)) static void listen_to_faults(void) {
    struct sigaction action = {.sa_sigaction = say_where, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
}

static void expect(bool is_so, const operand *o, const char *what) {
    if (is_so)
        return;
    fprintf(stderr, "%s: operand %d of %zu bytes: %s\n", implementation, o->name, o->bytes, what);
    abort();
}

/* ---- operands ---- */

static size_t bytes_to_last(operand_desc desc, int rank, const int64_t *sizes,
                            const int64_t *strides, dnnl_data_type_t type) {
    int64_t last = 0;
    for (int d = 0; d < rank; d++)
        last += (sizes[d] - 1) * strides[d];
    return dnnl_memory_desc_get_size(desc) ? (size_t)(last + 1) * dnnl_data_type_size(type) : 0;
}

/* What the library says, but for elements at strides, behind whose last one it counts what is none of them. */
static size_t bytes_of(operand_desc desc) {
#if DNNL_VERSION_MAJOR < 3
    if (desc->format_kind == dnnl_blocked && desc->format_desc.blocking.inner_nblks == 0)
        return bytes_to_last(desc, desc->ndims, desc->dims, desc->format_desc.blocking.strides,
                             desc->data_type);
#else
    const dnnl_dims_t *sizes, *strides;
    int rank = 0, blocks = 0;
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    dnnl_data_type_t type = dnnl_data_type_undef;
    dnnl_memory_desc_query(desc, dnnl_query_format_kind, &kind);
    dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
    dnnl_memory_desc_query(desc, dnnl_query_data_type, &type);
    dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &rank);
    if (kind == dnnl_blocked && blocks == 0 &&
        dnnl_memory_desc_query(desc, dnnl_query_dims, &sizes) == dnnl_success &&
        dnnl_memory_desc_query(desc, dnnl_query_strides, &strides) == dnnl_success)
        return bytes_to_last(desc, rank, *sizes, *strides, type);
#endif
    return dnnl_memory_desc_get_size(desc);
}

static void operand_init(operand *o, const dnnl_exec_arg_t *argument) {
    void *from = NULL;
    operand_desc desc = NULL;
    dnnl_memory_get_data_handle(argument->memory, &from);
    dnnl_memory_get_memory_desc(argument->memory, &desc);
    *o = (operand){.name = argument->arg, .from = from, .bytes = bytes_of(desc)};
    const size_t bytes = pages_bytes(o);
    o->before = malloc(bytes);
    expect(o->before != NULL, o, "no memory");
    memcpy(o->before, from, o->bytes);
    for (int w = 0; w < WAYS; w++) {
        o->pages[w] = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(o->pages[w] != MAP_FAILED &&
                   mprotect(o->pages[w] + PAGE, bytes - 2 * PAGE, PROT_READ | PROT_WRITE) == 0,
               o, "no memory");
        o->data[w] = w == AT_END ? o->pages[w] + bytes - PAGE - o->bytes : o->pages[w] + PAGE;
    }
}

static void operand_fini(operand *o) {
    for (int w = 0; w < WAYS; w++)
        munmap(o->pages[w], pages_bytes(o));
    free(o->before);
}

static bool is_scratch(const operand *o) {
    return o->name == DNNL_ARG_SCRATCHPAD;
}

static bool is_output(const operand *o) {
    return o->name == DNNL_ARG_DST || o->name == DNNL_ARG_DIFF_SRC ||
           o->name == DNNL_ARG_DIFF_WEIGHTS;
}

/* Scratch memory may hold anything: other bytes each time. */
static void fill(const operand *o) {
    if (is_scratch(o))
        memset(o->data[way], way == AT_END ? 0xff : 0x7f, o->bytes);
    else
        memcpy(o->data[way], o->before, o->bytes);
}

/* What lies between an output's elements may be another thread's, and is not written. */
static void give_back(const operand *o) {
    const char *made = o->data[AT_END];
    expect(memcmp(made, o->data[AT_BEGIN], o->bytes) == 0, o, "where it lies shows");
    for (size_t i = 0; i < o->bytes; i++)
        if (made[i] != o->before[i])
            o->from[i] = made[i];
}

static void expect_untouched(const operand *o) {
    for (int w = 0; w < WAYS; w++)
        expect(memcmp(o->before, o->data[w], o->bytes) == 0, o, "an input is written");
}

/* ---- primitives ---- */

static dnnl_status_t run(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                         const dnnl_exec_arg_t *arguments) {
    execute_fn *execute = (execute_fn *)dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    for (int i = 0; i < operand_count; i++) {
        fill(&operands[i]);
        dnnl_memory_set_data_handle(arguments[i].memory, operands[i].data[way]);
    }
    dnnl_status_t status = execute(primitive, stream, operand_count, arguments);
    for (int i = 0; i < operand_count; i++)
        dnnl_memory_set_data_handle(arguments[i].memory, operands[i].from);
    return status;
}

static const char *implementation_of(const_dnnl_primitive_t primitive) {
    const_dnnl_primitive_desc_t plan = NULL;
    const char *name = "oneDNN";
    dnnl_primitive_get_primitive_desc(primitive, &plan);
    dnnl_primitive_desc_query(plan, dnnl_query_impl_info_str, 0, &name);
    return name;
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t *arguments) {
    implementation = implementation_of(primitive);
    if (count > OPERANDS_MOST)
        abort();
    for (int i = 0; i < count; i++)
        operand_init(&operands[i], &arguments[i]);
    operand_count = count;
    dnnl_status_t status = dnnl_success;
    for (way = AT_END; way < WAYS && status == dnnl_success; way++)
        status = run(primitive, stream, arguments);
    for (int i = 0; i < count && status == dnnl_success; i++)
        if (is_output(&operands[i]))
            give_back(&operands[i]);
        else if (!is_scratch(&operands[i]))
            expect_untouched(&operands[i]);
    operand_count = 0;
    for (int i = 0; i < count; i++)
        operand_fini(&operands[i]);
    return status;
}
