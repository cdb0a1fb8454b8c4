#include <program/passes/passes.h>

static bool (*const passes[])(eddy_code *code, const uint32_t *bases) = {
#define EDDY_PASS_ROW(name, sentence) eddy_pass_##name,
    EDDY_PASS_LIST(EDDY_PASS_ROW)
#undef EDDY_PASS_ROW
};

bool eddy_passes_run(eddy_code *code, const uint32_t *bases, uint32_t chosen) {
    for (uint32_t i = 0; i < EDDY_PASS_COUNT; i++)
        if (chosen & 1u << i && !passes[i](code, bases))
            return false;
    return true;
}
