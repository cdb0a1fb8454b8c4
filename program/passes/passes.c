#include <program/passes/passes.h>

/* fold has no row: it makes a program (fold.h). */
static bool (*const passes[EDDY_PASS_COUNT])(eddy_code *code, const uint32_t *bases) = {
    [EDDY_PASS_NUMBER_cast] = eddy_pass_cast,   [EDDY_PASS_NUMBER_dead] = eddy_pass_dead,
    [EDDY_PASS_NUMBER_same] = eddy_pass_same,   [EDDY_PASS_NUMBER_richer] = eddy_pass_richer,
    [EDDY_PASS_NUMBER_move] = eddy_pass_move,   [EDDY_PASS_NUMBER_fuse] = eddy_pass_fuse,
    [EDDY_PASS_NUMBER_place] = eddy_pass_place,
};

bool eddy_passes_run(eddy_code *code, const uint32_t *bases, uint32_t chosen) {
    for (uint32_t i = 0; i < EDDY_PASS_COUNT; i++)
        if (chosen & 1u << i && passes[i] && !passes[i](code, bases))
            return false;
    return true;
}
