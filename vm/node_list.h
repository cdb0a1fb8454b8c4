/* Nodes in the order of their instructions. Engine only. */
#ifndef EDDY_VM_NODE_LIST_H
#define EDDY_VM_NODE_LIST_H

#include <vm/node.h>

/* Through ready_next. */
typedef struct eddy_node_list {
    eddy_node *first, *last; /* last: of a list that is not empty */
} eddy_node_list;

static inline bool eddy_node_is_before(const eddy_node *a, const eddy_node *b) {
    return a->instruction.view.sequence < b->instruction.view.sequence;
}

/* Mostly at the end, or at the beginning: what lies between is passed one by one. */
static inline void eddy_node_list_insert(eddy_node_list *list, eddy_node *node) {
    eddy_node **link = &list->first;
    if (list->first && eddy_node_is_before(list->last, node))
        link = &list->last->ready_next;
    while (*link && eddy_node_is_before(*link, node))
        link = &(*link)->ready_next;
    node->ready_next = *link;
    *link = node;
    if (!node->ready_next)
        list->last = node;
}

/* NULL: it is empty. */
static inline eddy_node *eddy_node_list_pop(eddy_node_list *list) {
    eddy_node *node = list->first;
    if (node)
        list->first = node->ready_next;
    return node;
}

#endif
