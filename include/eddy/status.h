/* The statuses of calls, and the record of an error.
 *
 * Every failing call that returns a status or NULL fills the calling thread's slot: the first record since the last
 * eddy_error_take is kept, the rest are counted. One line on stderr reports the errors that were not taken by the end of the
 * process. Nothing in this header blocks or allocates; any thread may call it. */
#ifndef EDDY_STATUS_H
#define EDDY_STATUS_H

#include <eddy/export.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One row per status: name, value, text. The only list of statuses. */
#define EDDY_STATUS_LIST(row)                                                                      \
    row(OK, 0, "ok") row(INVALID_ARGUMENT, 1, "invalid argument") row(SHAPE_MISMATCH, 2,           \
                                                                      "shapes do not fit")         \
        row(DTYPE_MISMATCH, 3, "dtypes do not fit") row(DEVICE_MISMATCH, 4, "devices do not fit")  \
            row(RUNTIME_MISMATCH, 5, "tensors of different runtimes") row(OUT_OF_RANGE, 6,         \
                                                                          "index out of range")    \
                row(SIZE_OVERFLOW, 7, "size does not fit into 63 bits") row(                       \
                    OVERLAP, 8, "operands overlap in memory") row(UNSUPPORTED, 9, "not supported") \
                    row(NOT_FOUND, 10, "not found") row(OUT_OF_MEMORY, 11, "out of memory")        \
                        row(TIMED_OUT, 12, "timed out") row(WOULD_DEADLOCK, 13,                    \
                                                            "this wait would never end")           \
                            row(WRONG_THREAD, 14, "not allowed on this thread")                    \
                                row(SHUT_DOWN, 15, "the runtime is shut down")                     \
                                    row(FORKED, 16, "the runtime belongs to the parent process")   \
                                        row(KERNEL_FAILED, 17, "a kernel failed")                  \
                                            row(SKIPPED, 18, "an in-place write was skipped") row( \
                                                TORN, 19, "an in-place write failed half-way")     \
                                                row(NOT_FINITE, 20, "NaN or infinity found")       \
                                                    row(DEVICE_LOST, 21, "the device is lost")     \
                                                        row(IO, 22, "input or output failed")      \
                                                            row(INTERNAL, 23, "internal error")

typedef enum eddy_status {
#define EDDY_STATUS_ROW(name, value, text) EDDY_##name = value,
    EDDY_STATUS_LIST(EDDY_STATUS_ROW)
#undef EDDY_STATUS_ROW
} eddy_status;

/* An error as it was recorded. A plain value: nothing in it has to be freed. */
typedef struct eddy_error {
    eddy_status status;
    char op[48];         /* the entry's name ("add"), or the function's ("read") */
    char message[512];   /* one sentence with operands' shapes, dtypes, devices */
    const void *address; /* return address of the public function that was called, or NULL */
    char place[96]; /* "file:line" of the call, if it was compiled with EDDY_CALL_SITES, else "" */
    uint64_t sequence; /* of the instruction that failed; 0 for an error of the call itself */
    uint64_t
        more; /* errors of this thread (eddy_sync: of the runtime) that came after and were only counted */
} eddy_error;

/* Returns the status in the calling thread's slot (EDDY_OK if there is none), copies the record to *error unless that
 * is NULL, and clears the slot. */
EDDY_API eddy_status eddy_error_take(eddy_error *error);

/* The name ("EDDY_OUT_OF_RANGE") and the text ("index out of range") of a status; never NULL; static storage. */
EDDY_API const char *eddy_status_name(eddy_status status);
EDDY_API const char *eddy_status_text(eddy_status status);

#ifdef __cplusplus
}
#endif
#endif
