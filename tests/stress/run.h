/* A random program under way on a VM, in step with its oracle. */
#ifndef EDDY_TESTS_RUN_H
#define EDDY_TESTS_RUN_H

#include "program.h"

#include <base/sleep.h>
#include <streams/fake.h>
#include <streams/far.h>
#include <vm/stream.h>

/* One thread at a time; who hands it on synchronises. */
typedef struct program_run {
    const random_program *program;
    const char *path; /* for messages */
    eddy_vm *vm;
    eddy_vm_stream *streams[PROGRAM_STREAMS];
    eddy_work_queue *fakes[PROGRAM_STREAMS]; /* NULL where real streams run the program */
    uint8_t device;                          /* the far one; 0 where there is none */
    bool is_mixed;                           /* every third slot is the host's */
    eddy_vm_stream *far_streams[PROGRAM_STREAMS];
    uint8_t devices[PROGRAM_SLOTS];
    uint64_t choices; /* state of the schedule's random numbers */
    eddy_storage_number storages[PROGRAM_SLOTS];
    program_slot slots[PROGRAM_SLOTS]; /* the oracle's, in step with the run */
    eddy_vm_lend *lends[PROGRAM_SLOTS];
    /* Others use the VM at the same time: their errors count, and may push a record that was seen out of the pool. */
    bool is_shared;
    /* Gives up a storage; NULL: at once, on this thread. */
    void (*release)(struct program_run *run, eddy_storage_number storage);
} program_run;

/* Puts the run at the first step of a program. The slots are empty. */
void program_run_begin(program_run *run, const random_program *program);
/* Runs step `index` and compares what it shows with the oracle; a difference is printed with the seed, then abort. */
void program_run_step(program_run *run, int index);
/* Compares and gives up all that is left. */
void program_run_end(program_run *run);

/* Two streams beside the default one: fakes (the first ordered), or ordered ones of the CPU. */
void program_run_open_streams(program_run *run, bool has_fakes);
/* A far device, and streams of it in place of the others. is_mixed: every third slot is the host's. */
void program_run_open_far(program_run *run, uint64_t seed, bool is_mixed);
void program_run_close_streams(program_run *run);
/* Whether each call of all programs has ended, and once; for when their VMs are gone. */
bool program_run_has_ended_all(void);

#endif
