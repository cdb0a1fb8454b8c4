/* What the environment asks for: variables FAKE_CUDA_..., read at the first call of any entry. README.md lists them. */
#ifndef EDDY_TESTS_FAKE_CUDA_OPTION_H
#define EDDY_TESTS_FAKE_CUDA_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_DEVICES 8

typedef enum fake_mode {
    FAKE_EAGER, /* what is launched may run at once */
    FAKE_LAZY,  /* runs when the host waits for it, or has called nothing for a while */
    FAKE_MIXED, /* the seed decides, launch by launch */
} fake_mode;

typedef struct fake_options {
    int devices;
    int capability;   /* 90: 9.0 */
    int version;      /* of the driver; 13000: CUDA 13.0 */
    int blas_version; /* of the library of products; 130000: 13.0.0 */
    int dnn_version;  /* of that of convolutions; 90000: 9.0.0 */
    int dnn_plan_ms;  /* that it takes for a plan */
    int64_t bytes;    /* of the memory of each device */
    uint64_t seed;
    fake_mode mode;
    int64_t pinned_bytes; /* of the host's memory that may be pinned */
    bool has_stream_writes;
    bool captures_writes; /* of values */
    bool has_peers;       /* devices may reach each other's memory */
    bool aborts;          /* at the first finding */
    bool obeys_priorities;
    const char *kernels; /* the library of the kernels */
    /* The call of any entry, of one entry, and the piece that fail; 0: none. Results are 0 where they are to be chosen. */
    long fail_call, fail_entry_call, fail_run;
    int fail_call_result, fail_entry_result, fail_run_result;
    char fail_entry[64]; /* symbol, also without _v2 */
} fake_options;

/* Ends the process with a line if a variable cannot be understood. Any thread. Also for the fake libraries of products and convolutions. */
__attribute__((visibility("default"))) const fake_options *fake_options_read(void);

#endif
