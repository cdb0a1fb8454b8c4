/* A tool that NVTX loads and that does nothing with what it is told: what is left is what it takes to tell it. */
#include <tests/nvtx/attach.h>

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes) {
    (void)domain;
    (void)attributes;
    return 0;
}

static int NVTX_API pop(nvtxDomainHandle_t domain) {
    (void)domain;
    return 0;
}

static nvtxDomainHandle_t NVTX_API domain_create(const char *name) {
    return (nvtxDomainHandle_t)(void *)(uintptr_t)name;
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char *string) {
    (void)domain;
    return (nvtxStringHandle_t)(void *)(uintptr_t)string;
}

static uint64_t NVTX_API register_schema(nvtxDomainHandle_t domain,
                                         const nvtxPayloadSchemaAttr_t *schema) {
    (void)domain;
    (void)schema;
    return 1;
}

static const nvtx_tool this_tool = {.push = push,
                                    .pop = pop,
                                    .domain_create = domain_create,
                                    .register_string = register_string,
                                    .register_schema = register_schema};

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    return nvtx_attach(get_table, &this_tool);
}

int NVTX_API InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module) {
    return nvtx_attach_extension(module, &this_tool);
}
