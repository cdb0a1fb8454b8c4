#include <program/passes/passes.h>

typedef struct pass_row {
    eddy_pass pass;
    bool (*run)(eddy_code *code, const uint32_t *bases);
} pass_row;

/* In the order in which they run. fold has no row: it makes a program (fold.h). */
static const pass_row rows[] = {
    {EDDY_PASS_NUMBER_cast, eddy_pass_cast},
    {EDDY_PASS_NUMBER_transfer, eddy_pass_transfer},
    {EDDY_PASS_NUMBER_dead, eddy_pass_dead},
    {EDDY_PASS_NUMBER_same, eddy_pass_same},
    {EDDY_PASS_NUMBER_richer, eddy_pass_richer},
    {EDDY_PASS_NUMBER_layout, eddy_pass_layout},
    {EDDY_PASS_NUMBER_subbatch, eddy_pass_subbatch},
    {EDDY_PASS_NUMBER_accumulate, eddy_pass_accumulate},
    {EDDY_PASS_NUMBER_winograd, eddy_pass_winograd},
    {EDDY_PASS_NUMBER_move, eddy_pass_move},
    {EDDY_PASS_NUMBER_fuse, eddy_pass_fuse},
    {EDDY_PASS_NUMBER_place, eddy_pass_place},
};

_Static_assert(sizeof(rows) / sizeof(*rows) == EDDY_PASS_COUNT - 1, "each pass but fold has a row");

bool eddy_passes_run(eddy_code *code, eddy_bases *bases, uint32_t chosen) {
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (chosen & 1u << rows[i].pass &&
            !(rows[i].run(code, bases->of) && eddy_bases_fit(bases, code)))
            return false;
    return true;
}

static bool run_both(const pass_row *row, eddy_code *most, eddy_code *least,
                     const uint32_t *bases) {
    switch (row->pass) {
    case EDDY_PASS_NUMBER_subbatch:
        return true; /* two sizes have few divisors in common */
    case EDDY_PASS_NUMBER_move:
        return eddy_pass_move_as(most, most, bases) && eddy_pass_move_as(least, most, bases);
    case EDDY_PASS_NUMBER_fuse:
        return eddy_pass_fuse_both(most, least, bases);
    default:
        return row->run(most, bases) && row->run(least, bases);
    }
}

bool eddy_passes_run_both(eddy_code *most, eddy_code *least, const uint32_t *bases,
                          uint32_t chosen) {
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (chosen & 1u << rows[i].pass && !run_both(&rows[i], most, least, bases))
            return false;
    return true;
}
