/* The names of ops that were registered at run time. Process-wide; an op stays for the life of the process. */
#ifndef EDDY_FUNCTIONAL_REGISTRY_H
#define EDDY_FUNCTIONAL_REGISTRY_H

#include <base/assert.h>
#include <interpreter/call/op.h>

typedef enum eddy_registry_result {
    EDDY_REGISTRY_ADDED,
    EDDY_REGISTRY_TAKEN, /* there is an op of that name */
    EDDY_REGISTRY_FULL,  /* no memory for a larger table */
} eddy_registry_result;

/* Adds `op`, which eddy_op_find then finds on every thread. Any thread. */
EDDY_MUST_USE eddy_registry_result eddy_registry_add(const eddy_op *op);

#endif
