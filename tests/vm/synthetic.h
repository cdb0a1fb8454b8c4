/* Synthetic ops on storages of int64 cells, for tests of the VM alone: each writes a mix of what it reads, so that a wrong
 * order, a missing edge or a block used too early shows as a wrong value. */
#ifndef EDDY_TESTS_SYNTHETIC_H
#define EDDY_TESTS_SYNTHETIC_H

#include <base/memory.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <vm/vm.h>

typedef struct synthetic_arguments {
    int64_t seed;
    int64_t sleep_ns;   /* how long the kernel takes */
    int64_t fails;      /* nonzero: fails with OUT_OF_RANGE after writing half */
    int64_t late_count; /* mut2: cells that the output turns out to have */
    int64_t accesses;   /* two bits an operand: eddy_access; bit 62: unused */
} synthetic_arguments;

static inline int64_t synthetic_mix(int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a * 0x9e3779b97f4a7c15u + (uint64_t)b;
    x ^= x >> 29;
    return (int64_t)(x * 0xbf58476d1ce4e5b9u);
}

static inline void synthetic_busy(int64_t ns) {
    if (ns <= 0)
        return;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000LL + (now.tv_nsec - begin.tv_nsec) < ns);
}

/* Folds every input's first cell into the seed and writes it over all cells of the outputs; targets in place are mixed
 * cell by cell. Which operand is what is told by two bits each: 0 input, 1 written whole, 2 in place, 3 left alone. */
static inline void synthetic_run(const eddy_vm_run *run) {
    const synthetic_arguments *arguments = run->instruction->arguments;
    synthetic_busy(arguments->sleep_ns);
    int64_t value = arguments->seed;
    for (int64_t i = 0; i < run->instruction->operand_count && i < 31; i++)
        if ((arguments->accesses >> 2 * i & 3) == 0 && run->bytes[i] > 0)
            value = synthetic_mix(value, ((const int64_t *)run->data[i])[0]);
    for (int64_t i = 0; i < run->instruction->operand_count && i < 31; i++) {
        int64_t role = arguments->accesses >> 2 * i & 3;
        int64_t *cells = run->data[i];
        int64_t count = run->bytes[i] / 8;
        if (role == 0 || role == 3)
            continue;
        for (int64_t c = 0; c < count; c++) {
            if (arguments->fails && c >= count / 2)
                break;
            cells[c] = role == 1 ? synthetic_mix(value, c) : synthetic_mix(cells[c], value);
        }
    }
    if (arguments->fails) {
        int32_t ok = EDDY_OK;
        eddy_cas_acq_rel(&run->error->status, &ok, EDDY_OUT_OF_RANGE);
    }
}

static inline void synthetic_count(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes) {
    const synthetic_arguments *arguments = run->instruction->arguments;
    shapes[0] = (eddy_shape){1, {arguments->late_count}};
    bytes[0] = arguments->late_count * 8;
}

/* Whether a call may promise to be plain. */
static inline bool synthetic_is_plain(const eddy_vm_descriptor *descriptor,
                                      const eddy_vm_operand *operands, int64_t count) {
    if (count < 1 || count > 8 || descriptor->workspace || descriptor->count)
        return false;
    for (int64_t i = 0; i < count - 1; i++)
        if (operands[i].access != EDDY_ACCESS_CONST)
            return false;
    return operands[count - 1].is_new && operands[count - 1].access == EDDY_ACCESS_MUT;
}

static inline const char *synthetic_name(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "synthetic";
}

static inline int synthetic_describe(const eddy_vm_instruction *instruction, char *buffer,
                                     size_t size) {
    return snprintf(buffer, size, "synthetic(%lld operands)",
                    (long long)instruction->operand_count);
}

static inline int synthetic_explain(const eddy_vm_instruction *instruction,
                                    const eddy_kernel_error *error, char *buffer, size_t size) {
    (void)error;
    const synthetic_arguments *arguments = instruction->arguments;
    return snprintf(buffer, size, "synthetic: told to fail, seed %lld", (long long)arguments->seed);
}

/* Calls whose descriptor has an end, submitted by this file and not ended. */
static _Atomic int64_t synthetic_open;

static inline void synthetic_end(const eddy_vm_instruction *instruction) {
    (void)instruction;
    eddy_sub_relaxed(&synthetic_open, 1);
}

static inline eddy_status synthetic_submit(eddy_vm *vm, eddy_vm_call *call) {
    bool is_to_end = call->instruction.descriptor->end;
    eddy_add_relaxed(&synthetic_open, is_to_end);
    eddy_status status = eddy_vm_submit(vm, call);
    if (status != EDDY_OK)
        eddy_sub_relaxed(&synthetic_open, is_to_end);
    return status;
}

/* The plain one is for calls that promise to be. */
static const eddy_vm_descriptor synthetic_plain_op = {.run = synthetic_run,
                                                      .name = synthetic_name,
                                                      .describe = synthetic_describe,
                                                      .explain = synthetic_explain};
static const eddy_vm_descriptor synthetic_op = {.run = synthetic_run,
                                                .name = synthetic_name,
                                                .describe = synthetic_describe,
                                                .explain = synthetic_explain,
                                                .end = synthetic_end};
static const eddy_vm_descriptor synthetic_late_op = {.run = synthetic_run,
                                                     .count = synthetic_count,
                                                     .name = synthetic_name,
                                                     .describe = synthetic_describe,
                                                     .explain = synthetic_explain,
                                                     .end = synthetic_end};

/* A release link of its own for storages that no handle owns. */
static inline void synthetic_recycle(eddy_vm_release_link *link) {
    eddy_memory_release(link, sizeof(*link), EDDY_MEMORY_HANDLE);
}

static inline void synthetic_release(eddy_vm *vm, eddy_storage_number storage) {
    eddy_vm_release_link *link = eddy_memory_acquire(sizeof(*link), EDDY_MEMORY_HANDLE);
    EDDY_ASSERT(link);
    link->storage = storage;
    link->recycle = synthetic_recycle;
    eddy_vm_release(vm, link);
}

#endif
