#include <program/passes/passes.h>

typedef struct pass_row {
    eddy_pass pass;
    bool (*run)(eddy_code *code, const uint32_t *bases);
} pass_row;

/* In the order in which they run. fold has no row: it makes a program (fold.h). */
static const pass_row rows[] = {
    {EDDY_PASS_NUMBER_cast, eddy_pass_cast},         {EDDY_PASS_NUMBER_dead, eddy_pass_dead},
    {EDDY_PASS_NUMBER_same, eddy_pass_same},         {EDDY_PASS_NUMBER_richer, eddy_pass_richer},
    {EDDY_PASS_NUMBER_winograd, eddy_pass_winograd}, {EDDY_PASS_NUMBER_move, eddy_pass_move},
    {EDDY_PASS_NUMBER_fuse, eddy_pass_fuse},         {EDDY_PASS_NUMBER_place, eddy_pass_place},
};

_Static_assert(sizeof(rows) / sizeof(*rows) == EDDY_PASS_COUNT - 1, "each pass but fold has a row");

bool eddy_passes_run(eddy_code *code, const uint32_t *bases, uint32_t chosen) {
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (chosen & 1u << rows[i].pass && !rows[i].run(code, bases))
            return false;
    return true;
}
