#include <program/bases.h>

#include <base/memory.h>
#include <string.h>

bool eddy_bases_fit(eddy_bases *bases, const eddy_code *code) {
    uint32_t count = code->values.count;
    if (EDDY_LIKELY(count <= bases->count))
        return true;
    uint32_t *of = eddy_memory_grow(bases->of, bases->count * sizeof(*of), count * sizeof(*of),
                                    EDDY_MEMORY_PROGRAM);
    if (!of)
        return false;
    memset(of + bases->count, 0, (count - bases->count) * sizeof(*of));
    *bases = (eddy_bases){of, count};
    return true;
}

void eddy_bases_fini(eddy_bases *bases) {
    eddy_memory_release(bases->of, bases->count * sizeof(*bases->of), EDDY_MEMORY_PROGRAM);
    *bases = (eddy_bases){0};
}
