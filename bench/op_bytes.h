/* The bytes for each element that the ops of the op rows read and write, from the same list: what a copy beside them moves. */
#ifndef BENCH_OP_BYTES_H
#define BENCH_OP_BYTES_H

#include <bench/op_rows.h>
#include <string.h>

static const struct bench_op_bytes {
    const char *name;
    int bytes;
} bench_all_op_bytes[] = {
#define BENCH_OP_BYTES(name, bytes, ours, theirs) {#name, bytes},
    BENCH_OP_LIST(BENCH_OP_BYTES)
#undef BENCH_OP_BYTES
};

enum { BENCH_OP_BYTES_COUNT = sizeof(bench_all_op_bytes) / sizeof(bench_all_op_bytes[0]) };

/* 0: they are not counted, or there is no such op. */
static inline size_t bench_op_bytes_of(const char *op) {
    for (int i = 0; i < BENCH_OP_BYTES_COUNT; i++)
        if (!strcmp(bench_all_op_bytes[i].name, op))
            return (size_t)bench_all_op_bytes[i].bytes;
    return 0;
}

static inline size_t bench_op_bytes_most(void) {
    size_t most = 0;
    for (int i = 0; i < BENCH_OP_BYTES_COUNT; i++)
        if ((size_t)bench_all_op_bytes[i].bytes > most)
            most = (size_t)bench_all_op_bytes[i].bytes;
    return most;
}

#endif
