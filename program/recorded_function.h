/* A recorded function: its programs, one for each signature.
 *
 * Any thread. No lock is held while the function or a program runs. */
#ifndef EDDY_PROGRAM_RECORDED_FUNCTION_H
#define EDDY_PROGRAM_RECORDED_FUNCTION_H

#include <base/sleep.h>
#include <eddy/recorded.h>
#include <program/signature.h>

struct eddy_recorded {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    eddy_recorded_body *body;
    void *context;
    int64_t output_count, most_bytes;
    bool is_strict;
    eddy_lock lock;
    eddy_signature *first; /* lock: lock */
};

#endif
