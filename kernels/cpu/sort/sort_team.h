/* Sorting one long line of records with a team. */
#ifndef EDDY_KERNELS_CPU_SORT_TEAM_H
#define EDDY_KERNELS_CPU_SORT_TEAM_H

#include <kernels/cpu/sort/sort_key.h>
#include <kernels/kernel.h>

/* Records from which on a team is worth it. */
#define EDDY_SORT_LONG 131072

/* Does what eddy_sort_records does, to the record: parts are sorted side by side and merged in pairs, each merge by several. Not
 * within a slice. */
void eddy_sort_records_by_team(eddy_kernel_team *team, const eddy_sort_order *order, void *records,
                               void *spare, int64_t count);

#endif
