/* A tool that NVTX loads (README.md). */
#include "attach.h"
#include "told.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TOLD_MOST 100000
#define STRINGS_MOST 500
#define SCHEMA 77

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static told items[TOLD_MOST];
static int count, lost;
static char categories[64][16];
static char strings[STRINGS_MOST][40];
static int string_count, registered_twice;
static char domain_name[16];
static int offsets[6]; /* of the payload's fields, as the schema says */
static size_t lengths[6];

/* ---- what it is told ---- */

static void copy_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from);
}

static void read_payload(told *to, const nvtxEventAttributes_t *attributes) {
    if (attributes->payloadType != NVTX_PAYLOAD_TYPE_EXT) {
        to->sequence = attributes->payload.ullValue;
        return;
    }
    const nvtxPayloadData_t *data = (const void *)(uintptr_t)attributes->payload.ullValue;
    const char *bytes = data->payload;
    if (data->schemaId != SCHEMA)
        abort();
    to->has_schema = true;
    memcpy(&to->sequence, bytes + offsets[0], 8);
    memcpy(&to->stream, bytes + offsets[1], 8);
    memcpy(&to->bytes, bytes + offsets[2], 8);
    memcpy(to->call, bytes + offsets[3], lengths[3]);
    memcpy(to->place, bytes + offsets[4], lengths[4]);
    memcpy(to->on, bytes + offsets[5], lengths[5]);
}

static void note(told_kind kind, nvtxDomainHandle_t domain,
                 const nvtxEventAttributes_t *attributes) {
    pthread_mutex_lock(&lock);
    if (count == TOLD_MOST) {
        lost++;
        pthread_mutex_unlock(&lock);
        return;
    }
    told *to = &items[count++];
    *to = (told){.kind = kind, .thread = syscall(SYS_gettid)};
    to->is_domain = domain == (nvtxDomainHandle_t)(void *)domain_name;
    if (attributes) {
        copy_text(to->category, sizeof(to->category), categories[attributes->category]);
        to->is_registered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
        copy_text(to->message, sizeof(to->message),
                  to->is_registered ? (const char *)(const void *)attributes->message.registered
                                    : attributes->message.ascii);
        read_payload(to, attributes);
    }
    pthread_mutex_unlock(&lock);
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes) {
    note(TOLD_PUSH, domain, attributes);
    return 0;
}

static int NVTX_API pop(nvtxDomainHandle_t domain) {
    note(TOLD_POP, domain, NULL);
    return 0;
}

static void NVTX_API mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes) {
    note(TOLD_MARK, domain, attributes);
}

static nvtxDomainHandle_t NVTX_API domain_create(const char *name) {
    copy_text(domain_name, sizeof(domain_name), name);
    return strcmp(name, "eddy") == 0 ? (nvtxDomainHandle_t)(void *)domain_name : NULL;
}

static void NVTX_API name_category(nvtxDomainHandle_t domain, uint32_t category, const char *name) {
    (void)domain;
    copy_text(categories[category], sizeof(categories[category]), name);
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char *string) {
    (void)domain;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < string_count; i++)
        registered_twice += strcmp(strings[i], string) == 0;
    char *kept = strings[string_count < STRINGS_MOST - 1 ? string_count++ : STRINGS_MOST - 1];
    copy_text(kept, sizeof(strings[0]), string);
    pthread_mutex_unlock(&lock);
    return (nvtxStringHandle_t)(void *)kept;
}

static uint64_t NVTX_API register_schema(nvtxDomainHandle_t domain,
                                         const nvtxPayloadSchemaAttr_t *schema) {
    (void)domain;
    for (size_t i = 0; i < schema->numEntries && i < 6; i++) {
        offsets[i] = (int)schema->entries[i].offset;
        lengths[i] = schema->entries[i].arrayOrUnionDetail;
    }
    return SCHEMA;
}

static void note_name(const told *named, const char *name) {
    pthread_mutex_lock(&lock);
    if (count == TOLD_MOST) {
        lost++;
    } else {
        items[count] = *named;
        items[count].is_domain = true;
        copy_text(items[count++].message, sizeof(items[0].message), name);
    }
    pthread_mutex_unlock(&lock);
}

static void NVTX_API name_cu_stream(CUstream stream, const char *name) {
    note_name(&(told){.kind = TOLD_STREAM, .stream = (uint64_t)(uintptr_t)stream}, name);
}

static void NVTX_API name_thread(uint32_t thread, const char *name) {
    note_name(&(told){.kind = TOLD_THREAD, .thread = (long)thread}, name);
}

/* ---- how NVTX finds it ---- */

static const nvtx_tool this_tool = {push,
                                    pop,
                                    mark,
                                    domain_create,
                                    name_category,
                                    register_string,
                                    register_schema,
                                    name_cu_stream,
                                    name_thread};

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    return nvtx_attach(get_table, &this_tool);
}

int NVTX_API InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module) {
    const char *schemas = getenv("NVTX_TOOL_SCHEMAS");
    return (!schemas || strcmp(schemas, "0") != 0) && nvtx_attach_extension(module, &this_tool);
}

/* ---- for tests ---- */

NVTX_EXPORTED told_so_far_fn nvtx_told_so_far;

/* Threads go on telling: what it returns is not changed by them. */
told_all nvtx_told_so_far(void) {
    pthread_mutex_lock(&lock);
    told_all all = {items, count, lost, string_count, registered_twice};
    pthread_mutex_unlock(&lock);
    return all;
}
