/* A tool that NVTX loads and that does nothing with what it is told: what is left is what it takes to tell it. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#define EXPORTED __attribute__((visibility("default")))

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

EXPORTED int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
EXPORTED int NVTX_API InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    return 1;
}

int NVTX_API InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module) {
    if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID)
        return 0;
    module->segments[0].functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] =
        (intptr_t)register_schema;
    return 1;
}
