/* Placing as an allocator would: blocks come and go in the order of instructions, each takes the tightest gap. Programs may keep
 * 1e5 values alive at once, so gaps are found in a tree instead of by a scan: a treap (Seidel and Aragon, "Randomized search trees",
 * 1996), whose priorities are a hash of the number, by size and then by offset. */
#include <program/arena_planner.h>

#include <base/memory.h>

/* A block alive, and the gap below it: from the end of the block before it. The gap is in the tree unless it is empty. */
typedef struct node {
    int64_t gap_at, gap_bytes;
    uint32_t before, after; /* in the list of blocks alive, by offset */
    uint32_t left, right;   /* in the tree of gaps; 0: none */
} node;

/* Nodes are numbers of blocks plus one; node 0 is the end of the list, above which nothing lies, and no node of the tree. */
typedef struct fit {
    node *nodes;
    uint32_t root;
} fit;

/* ---- the tree of gaps ---- */

static uint32_t priority(uint32_t at) {
    at = (at ^ at >> 16) * 0x7feb352dU;
    at = (at ^ at >> 15) * 0x846ca68bU;
    return at ^ at >> 16;
}

/* By size, then by offset; gaps that are in the tree differ in offset. */
static bool is_below(const fit *f, uint32_t a, uint32_t b) {
    const node *x = &f->nodes[a], *y = &f->nodes[b];
    return x->gap_bytes != y->gap_bytes ? x->gap_bytes < y->gap_bytes : x->gap_at < y->gap_at;
}

/* Parts the tree in those below the gap and the others, from the root down: each goes to the open end of its side. */
static void part(fit *f, uint32_t tree, uint32_t gap, uint32_t *low, uint32_t *high) {
    while (tree != 0) {
        node *n = &f->nodes[tree];
        if (is_below(f, tree, gap)) {
            *low = tree;
            low = &n->right;
            tree = n->right;
        } else {
            *high = tree;
            high = &n->left;
            tree = n->left;
        }
    }
    *low = *high = 0;
}

static void tree_add(fit *f, uint32_t gap) {
    uint32_t *link = &f->root, own = priority(gap);
    node *n = &f->nodes[gap];
    if (n->gap_bytes == 0)
        return;
    while (*link != 0 && priority(*link) >= own)
        link = is_below(f, *link, gap) ? &f->nodes[*link].right : &f->nodes[*link].left;
    part(f, *link, gap, &n->left, &n->right);
    *link = gap;
}

static void tree_remove(fit *f, uint32_t gap) {
    uint32_t *link = &f->root, low = f->nodes[gap].left, high = f->nodes[gap].right;
    if (f->nodes[gap].gap_bytes == 0)
        return;
    while (*link != gap)
        link = is_below(f, *link, gap) ? &f->nodes[*link].right : &f->nodes[*link].left;
    while (low != 0 && high != 0) {
        if (priority(low) >= priority(high)) {
            *link = low;
            link = &f->nodes[low].right;
            low = *link;
        } else {
            *link = high;
            link = &f->nodes[high].left;
            high = *link;
        }
    }
    *link = low != 0 ? low : high;
}

/* The least gap of at least so many bytes, of equal ones the lowest; 0: none. */
static uint32_t tightest(const fit *f, int64_t bytes) {
    uint32_t best = 0;
    for (uint32_t at = f->root; at != 0;) {
        bool fits = f->nodes[at].gap_bytes >= bytes;
        best = fits ? at : best;
        at = fits ? f->nodes[at].left : f->nodes[at].right;
    }
    return best;
}

/* ---- blocks come and go ---- */

/* Puts the block at the bottom of the gap below `above`, or above all; its offset. */
static int64_t enter(fit *f, uint32_t at, uint32_t above, int64_t bytes) {
    node *n = &f->nodes[at], *next = &f->nodes[above];
    if (above != 0)
        tree_remove(f, above);
    int64_t offset = next->gap_at;
    *n = (node){.gap_at = offset, .before = next->before, .after = above};
    f->nodes[n->before].after = next->before = at;
    next->gap_at += bytes;
    if (above != 0) {
        next->gap_bytes -= bytes;
        tree_add(f, above);
    }
    return offset;
}

/* The gap above grows by the block and the gap below it. */
static void leave(fit *f, uint32_t at, int64_t bytes) {
    node *n = &f->nodes[at], *next = &f->nodes[n->after];
    tree_remove(f, at);
    if (n->after != 0)
        tree_remove(f, n->after);
    f->nodes[n->before].after = n->after;
    next->before = n->before;
    next->gap_at = n->gap_at;
    if (n->after != 0) {
        next->gap_bytes += bytes + n->gap_bytes;
        tree_add(f, n->after);
    }
}

static int64_t place_all(eddy_arena_planner *p, fit *f) {
    int64_t most = 0;
    uint32_t gone = 0;
    f->nodes[0] = (node){0};
    for (uint32_t i = 0; i < p->used; i++) {
        const eddy_arena_block *block = &p->blocks[p->order[i]];
        for (; p->blocks[p->numbers[gone]].last < block->first; gone++)
            leave(f, p->numbers[gone] + 1, eddy_arena_rounded(p->blocks[p->numbers[gone]].bytes));
        int64_t bytes = eddy_arena_rounded(block->bytes);
        int64_t offset = enter(f, p->order[i] + 1, tightest(f, bytes), bytes);
        p->offsets[p->order[i]] = offset;
        most = offset + bytes > most ? offset + bytes : most;
    }
    return most;
}

int64_t eddy_arena_place_as_allocator(eddy_arena_planner *p) {
    size_t bytes = ((size_t)p->count + 1) * sizeof(node);
    fit f = {.nodes = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM)};
    if (!f.nodes)
        return -1;
    int64_t most = place_all(p, &f);
    eddy_memory_release(f.nodes, bytes, EDDY_MEMORY_PROGRAM);
    return most;
}
