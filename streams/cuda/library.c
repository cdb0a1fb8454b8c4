#include <dlfcn.h>
#include <stdio.h>
#include <streams/cuda/library.h>
#include <string.h>

eddy_status eddy_cuda_library_open(const char *library, const eddy_cuda_entry *entries,
                                   size_t count, void *table, char *why, size_t size) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why, size, "there is no %s", library);
        return EDDY_UNSUPPORTED;
    }
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, entries[i].symbol);
        if (!symbol) {
            snprintf(why, size, "%s has no %s", library, entries[i].symbol);
            return EDDY_UNSUPPORTED;
        }
        memcpy((char *)table + entries[i].offset, &symbol, sizeof(symbol));
    }
    return EDDY_OK;
}
