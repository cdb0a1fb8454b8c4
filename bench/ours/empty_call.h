/* A call of the VM with an empty body, for rows about the VM alone. */
#ifndef BENCH_OURS_EMPTY_CALL_H
#define BENCH_OURS_EMPTY_CALL_H

#include <vm/vm.h>

extern const eddy_vm_descriptor empty_call;

void recycle_nothing(eddy_vm_release_link *link);

#endif
