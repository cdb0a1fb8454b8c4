#include <base/assert.h>
#include <base/log.h>
#include <stdio.h>
#include <streams/cuda/provider.h>

static int find(eddy_cuda_provider *provider) {
    if (eddy_cuda_library_open(provider->file, provider->entries, provider->entry_count,
                               provider->table, provider->why, sizeof(provider->why)) != EDDY_OK)
        return EDDY_CUDA_PROVIDER_NONE;
    int found = (int)provider->version_of(), least = provider->version_least;
    if (found >= least)
        return found;
    snprintf(provider->why, sizeof(provider->why), "%s is of version %d.%d, and %d.%d is needed",
             provider->file, found / 10000, found / 100 % 100, least / 10000, least / 100 % 100);
    return EDDY_CUDA_PROVIDER_NONE;
}

void eddy_cuda_provider_find(eddy_cuda_provider *provider) {
    eddy_store_release(&provider->version, find(provider));
}

bool eddy_cuda_provider_is_open(const eddy_cuda_provider *provider) {
    return eddy_load_acquire(&provider->version) > 0;
}

void eddy_cuda_provider_format(const eddy_cuda_provider *provider, char *buffer, size_t size) {
    int found = eddy_load_acquire(&provider->version);
    if (found > 0)
        snprintf(buffer, size, "%s %d.%d.%d", provider->name, found / 10000, found / 100 % 100,
                 found % 100);
    else
        snprintf(buffer, size, "%s", found == EDDY_CUDA_PROVIDER_NONE ? "Eddy" : "");
}

bool eddy_cuda_provider_open(eddy_cuda_provider *provider) {
    pthread_once(&provider->once, provider->find);
    if (EDDY_LIKELY(eddy_load_relaxed(&provider->is_said)) ||
        eddy_exchange_acq_rel(&provider->is_said, true))
        return false;
    char name[32];
    eddy_cuda_provider_format(provider, name, sizeof(name));
    bool is_there = eddy_cuda_provider_is_open(provider);
    eddy_log_line("cuda: %s by %s%s%s", provider->what, name, is_there ? "" : ": ",
                  is_there ? "" : provider->why);
    return is_there;
}
