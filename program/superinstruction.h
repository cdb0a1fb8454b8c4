/* Superinstructions: members of a group whose ops are a chain (interpreter/call/chain.h) run as its one loop.
 *
 * Each but the last makes a value that the next one alone reads, or writes one that the next one alone reads and overwrites (sums and
 * scales in place), so that nobody misses it in memory. They run where the last of them stands:
 * nothing in between may change what the others read. */
#ifndef EDDY_PROGRAM_SUPERINSTRUCTION_H
#define EDDY_PROGRAM_SUPERINSTRUCTION_H

#include <interpreter/call/chain.h>
#include <program/group.h>

typedef struct eddy_superinstruction {
    const eddy_chain *chain;
    const eddy_kernel *kernel; /* of the chain, for the dtype */
    eddy_dtype dtype;
    uint32_t members[EDDY_CHAIN_MEMBERS]; /* of the group, ascending */
} eddy_superinstruction;

/* Finds the longest chain that begins with the member. uses: eddy_group_count_uses. others: a bit for each member that other chains have.
 * False if there is none. */
bool eddy_superinstruction_find(const eddy_code *code, const uint32_t *uses,
                                const eddy_group_slots *group, uint32_t first, uint32_t others,
                                eddy_superinstruction *found);
/* Whether all members are one chain. */
bool eddy_superinstruction_is_all(const eddy_code *code, const uint32_t *uses,
                                  const eddy_group_slots *group);

#endif
