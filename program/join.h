/* The joint dims of an elementwise instruction: what its kernel's loop goes over. */
#ifndef EDDY_PROGRAM_JOIN_H
#define EDDY_PROGRAM_JOIN_H

#include <interpreter/call/joint.h>
#include <program/code.h>

/* Joins the operands of an elementwise instruction under the shape of what it writes, as a call does. */
void eddy_join_make(const eddy_code *code, const eddy_code_instruction *instruction,
                    eddy_joint *joint);

#endif
