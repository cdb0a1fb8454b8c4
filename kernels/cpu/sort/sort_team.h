/* Sorting one long line of records with a team. */
#ifndef EDDY_KERNELS_CPU_SORT_TEAM_H
#define EDDY_KERNELS_CPU_SORT_TEAM_H

#include <kernels/cpu/sort/sort_key.h>
#include <kernels/kernel.h>

/* From this many records on, a team is worth it. */
#define EDDY_SORT_LONG 131072

/* Gives the same records as eddy_sort_records: parts are sorted in parallel and merged in pairs; several threads share
 * each merge. Must not be called within a slice. */
void eddy_sort_records_by_team(eddy_kernel_team *team, const eddy_sort_order *order, void *records,
                               void *spare, int64_t count);

#endif
