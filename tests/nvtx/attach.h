/* How a tool attaches itself to NVTX, which has loaded it: it names its functions here, and exports the two that NVTX asks for. */
#ifndef EDDY_TESTS_NVTX_ATTACH_H
#define EDDY_TESTS_NVTX_ATTACH_H

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL: it does not hear of that. */
typedef struct nvtx_tool {
    int(NVTX_API *push)(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes);
    int(NVTX_API *pop)(nvtxDomainHandle_t domain);
    void(NVTX_API *mark)(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes);
    nvtxDomainHandle_t(NVTX_API *domain_create)(const char *name);
    void(NVTX_API *name_category)(nvtxDomainHandle_t domain, uint32_t category, const char *name);
    nvtxStringHandle_t(NVTX_API *register_string)(nvtxDomainHandle_t domain, const char *string);
    uint64_t(NVTX_API *register_schema)(nvtxDomainHandle_t domain,
                                        const nvtxPayloadSchemaAttr_t *schema);
    void(NVTX_API *name_cu_stream)(CUstream stream, const char *name);
    void(NVTX_API *name_thread)(uint32_t thread, const char *name);
} nvtx_tool;

/* False: this NVTX has no such table. */
static inline bool nvtx_attach(NvtxGetExportTableFunc_t get_table, const nvtx_tool *tool) {
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return false;
    const struct {
        NvtxCallbackIdCore2 id;
        NvtxFunctionPointer function;
    } entries[] = {
        {NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)tool->push},
        {NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)tool->pop},
        {NVTX_CBID_CORE2_DomainMarkEx, (NvtxFunctionPointer)tool->mark},
        {NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)tool->domain_create},
        {NVTX_CBID_CORE2_DomainNameCategoryA, (NvtxFunctionPointer)tool->name_category},
        {NVTX_CBID_CORE2_DomainRegisterStringA, (NvtxFunctionPointer)tool->register_string},
    };
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
        if (entries[i].function)
            *table[entries[i].id] = entries[i].function;
    if (tool->name_thread) {
        if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
            return false;
        *table[NVTX_CBID_CORE_NameOsThreadA] = (NvtxFunctionPointer)tool->name_thread;
    }
    if (!tool->name_cu_stream)
        return true;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDA, &table, &size))
        return false;
    *table[NVTX_CBID_CUDA_NameCuStreamA] = (NvtxFunctionPointer)tool->name_cu_stream;
    return true;
}

/* False: it is another extension, of which the tool knows nothing. */
static inline bool nvtx_attach_extension(const nvtxExtModuleInfo_t *module, const nvtx_tool *tool) {
    if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || !tool->register_schema)
        return false;
    module->segments[0].functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] =
        (intptr_t)tool->register_schema;
    return true;
}

#define NVTX_EXPORTED __attribute__((visibility("default")))
NVTX_EXPORTED int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
NVTX_EXPORTED int NVTX_API InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

#endif
