/* Checks of code that was not recorded here: text, files, passes. What passes them may be prepared and run as recorded code may: operands lie
 * within their storages, are what their op takes, and overlap as little as a call's may; values are made once, before they are used; inferring
 * again changes nothing; kernels are the interpreter's own choice. */
#ifndef EDDY_PROGRAM_VERIFY_H
#define EDDY_PROGRAM_VERIFY_H

#include <program/program.h>

typedef struct eddy_verdict {
    uint32_t instruction; /* the first that is wrong; EDDY_CODE_NONE: another part of the program */
    uint32_t binding;     /* the first that is wrong; EDDY_CODE_NONE: none */
    char reason[320];
} eddy_verdict;

/* Verifies code, externals (whose tensors do not count) and bindings. INVALID_ARGUMENT or OUT_OF_MEMORY with the verdict filled in, no error being
 * recorded. Its time grows with the size of the program, but for operands of one instruction that share a storage, which are
 * compared in pairs. */
EDDY_MUST_USE eddy_status eddy_verify_program(const eddy_program *program, eddy_verdict *verdict);

#endif
