/* Nodes, edges, retirement (PROTOCOL.md 5, 6). Engine only. */
#ifndef EDDY_VM_GRAPH_H
#define EDDY_VM_GRAPH_H

#include <vm/machine.h>

eddy_node *eddy_graph_node_acquire(eddy_vm *vm, const eddy_instruction *instruction);
void eddy_graph_link(eddy_vm *vm, eddy_node *node);
/* Adds a node without unsatisfied edges to its ready list. */
void eddy_graph_make_ready(eddy_vm *vm, eddy_node *node);
void eddy_graph_dispatched(eddy_vm *vm, eddy_node *node);
void eddy_graph_retire(eddy_vm *vm, eddy_node *node);
/* Whether an instruction's operands are free and its stream is open: it may run without a node. */
bool eddy_graph_is_free(eddy_vm *vm, const eddy_instruction *instruction);
/* Counts an instruction that ran without a node as retired. */
void eddy_graph_count_retired(eddy_vm *vm, const eddy_instruction *instruction, uint8_t new_device,
                              int64_t new_bytes, bool is_counted);
/* Counts an instruction as finished for the marks. */
void eddy_graph_count_finished(eddy_vm *vm, const eddy_instruction *instruction, uint8_t new_device,
                               int64_t new_bytes);
/* Marks the nodes that `node` waits for as wanted by its waiter; true if one is a lend of the waiter's own thread. */
bool eddy_graph_trace(eddy_vm *vm, eddy_node *node, eddy_waiter *waiter);
/* Makes a release take effect. */
void eddy_graph_release(eddy_vm *vm, eddy_storage_number number);
/* Puts freed numbers that found no room into the number ring, as far as there is room now. */
void eddy_graph_return_numbers(eddy_vm *vm);
/* Returns the others, so that issuers never make new numbers while there are free ones. */
void eddy_graph_return_beyond(eddy_vm *vm);

#endif
