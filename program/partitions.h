/* The partitions of an executable: its steps between two cuts (cut.h), which are on one device, or a copy between two.
 *
 * A run submits each partition as an instruction of the VM, in their order; several calls may be one (fusions.h). Operands are the bases that its steps use. What one partition makes and another uses has a storage of
 * its own, which goes with the run; everything else lies in the partition's part of the arena. Poison goes from one to the other by the storages, as it does from call to call. */
#ifndef EDDY_PROGRAM_PARTITIONS_H
#define EDDY_PROGRAM_PARTITIONS_H

#include <eddy/device.h>
#include <program/arena.h>
#include <program/code.h>

typedef struct eddy_executable eddy_executable;

typedef struct eddy_partition_base {
    uint32_t base;
    bool is_written; /* by the partition */
    bool is_first;   /* no earlier partition uses it */
} eddy_partition_base;

typedef struct eddy_partition {
    eddy_device device;            /* of a copy: where it goes */
    uint32_t first_step, end_step; /* of the executable */
    uint32_t first_jump;           /* that is not before its first step */
    uint32_t first_ordinal; /* its calls' numbers among the recorded ones are within these two */
    uint32_t end_ordinal;
    uint32_t bases_at,
        base_count;    /* those that it uses: a part of eddy_partitions.bases, ascending */
    uint32_t transfer; /* the instruction, if it is a copy; else EDDY_CODE_NONE */
    uint32_t
        call; /* the instruction, if it is one call of a device of such (cut.h); else EDDY_CODE_NONE */
    int64_t arena_bytes; /* up to the end of what its steps use there */
    int64_t cost_ps;
} eddy_partition;

typedef struct eddy_partitions {
    eddy_partition *items;
    uint32_t count;        /* 0: the code is not cut, and a run is one instruction */
    eddy_code_array bases; /* eddy_partition_base */
} eddy_partitions;

static inline const eddy_partition_base *eddy_partition_bases(const eddy_partitions *partitions,
                                                              const eddy_partition *partition) {
    return (const eddy_partition_base *)partitions->bases.items + partition->bases_at;
}

/* Finds the partitions of an executable that is made but for them, with the steps of instructions and the blocks of its arena. False without memory. */
EDDY_MUST_USE bool eddy_partitions_find(eddy_executable *executable, const eddy_code *code,
                                        const uint32_t *step_of, const eddy_arena_block *blocks,
                                        uint32_t block_count);
void eddy_partitions_fini(eddy_partitions *partitions);
int64_t eddy_partitions_bytes(const eddy_partitions *partitions);

/* Per value: whether several partitions of the code use it, a copy does, or a partition that is a call. `first`: room for a number per value. */
void eddy_partitions_find_shared(const eddy_code *code, uint32_t *first, bool *is_shared);

#endif
