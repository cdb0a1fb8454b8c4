#include <base/nvtx.h>

#include <base/call_site.h>
#include <base/name_table.h>
#include <base/process.h>
#include <base/sleep.h>
#include <base/trace.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a range tells: the schema below. */
typedef struct payload {
    uint64_t sequence, stream;
    int64_t bytes;
    char call[128]; /* "add(f32[16], f32[16])" */
    char place[64]; /* "train.c:12", where it was noted */
    char on[64];    /* its stream's name, if it has one */
} payload;

#define NUMBER(type_, field, text)                                                                 \
    {                                                                                              \
        .type = NVTX_PAYLOAD_ENTRY_TYPE_##type_, .name = #field, .description = text,              \
        .offset = offsetof(payload, field)                                                         \
    }
#define TEXT(field, text)                                                                          \
    {                                                                                              \
        .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, .name = #field, .description = text,              \
        .arrayOrUnionDetail = sizeof(((payload *)0)->field), .offset = offsetof(payload, field)    \
    }

static const nvtxPayloadSchemaEntry_t entries[] = {
    NUMBER(UINT64, sequence, "the instruction, as in errors and dumps"),
    NUMBER(UINT64, stream, "its stream in the runtime"),
    NUMBER(INT64, bytes, "of its operands"),
    TEXT(call, "dtypes and shapes"),
    TEXT(place, "where it was called"),
    TEXT(on, "the stream's name"),
};

static _Atomic bool is_served; /* atomic: acq_rel; set once, by who attaches the tool */
static _Atomic bool
    is_attached; /* atomic: release by that thread, acquire by others: NVTX has filled its table */
static nvtxDomainHandle_t domain; /* const before there is a listener */
static uint64_t schema;           /* as `domain`; 0: the tool knows none */
static eddy_lock lock = EDDY_LOCK_OF(EDDY_RANK_LISTENER);
static _Atomic(nvtxStringHandle_t)
    handles[EDDY_NAMES_MOST]; /* atomic: release, under the lock; by numbers of name_table.h */

/* ---- names ---- */

/* Lock: lock. The same text may have several numbers. */
static nvtxStringHandle_t registered(const char *op) {
    for (uint32_t i = 1; i < EDDY_NAMES_MOST; i++) {
        nvtxStringHandle_t handle = eddy_load_relaxed(&handles[i]);
        if (handle && strcmp(eddy_name_text(i), op) == 0)
            return handle;
    }
    return nvtxDomainRegisterStringA(domain, op);
}

/* NULL: it is sent as text. */
static nvtxStringHandle_t handle_of(const char *op) {
    uint32_t number = eddy_name_number(op);
    if (number == 0)
        return NULL;
    nvtxStringHandle_t handle = eddy_load_acquire(&handles[number]);
    if (handle)
        return handle;
    eddy_lock_acquire(&lock);
    handle = eddy_load_relaxed(&handles[number]);
    if (!handle) {
        handle = registered(op);
        eddy_store_release(&handles[number], handle);
    }
    eddy_lock_release(&lock);
    return handle;
}

/* ---- events ---- */

static void fill(payload *to, const eddy_trace_event *event) {
    const char *place = event->address ? eddy_call_site_place(event->address) : NULL;
    to->sequence = event->sequence;
    to->stream = event->stream;
    to->bytes = event->bytes;
    to->call[0] = to->place[0] = to->on[0] = '\0';
    if (event->on && event->on->name)
        snprintf(to->on, sizeof(to->on), "%s", event->on->name);
    /* Which takes as long as all else: others find it by the number. */
    if (event->phase == EDDY_TRACE_KERNEL && event->instruction && event->describe)
        (void)event->describe(event->instruction, to->call, sizeof(to->call));
    if (place)
        snprintf(to->place, sizeof(to->place), "%s", place);
}

static void name_event(nvtxEventAttributes_t *attributes, const eddy_trace_event *event) {
    const char *op = event->op ? event->op : eddy_trace_phase_name(event->phase);
    /* A name that a user has given may be another one at the same place next time. */
    nvtxStringHandle_t handle = event->phase == EDDY_TRACE_RANGE ? NULL : handle_of(op);
    attributes->messageType = handle ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
    if (handle)
        attributes->message.registered = handle;
    else
        attributes->message.ascii = op;
}

static void send(const eddy_trace_event *event) {
    payload tells;
    nvtxPayloadData_t data = {.schemaId = schema, .size = sizeof(tells), .payload = &tells};
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .category = (uint32_t)event->phase + 1};
    if (schema) {
        fill(&tells, event);
        attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        attributes.reserved0 = 1;
        attributes.payload.ullValue = (uint64_t)(uintptr_t)&data;
    } else {
        attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        attributes.payload.ullValue = event->sequence;
    }
    name_event(&attributes, event);
    if (event->kind == EDDY_TRACE_BEGINS)
        (void)nvtxDomainRangePushEx(domain, &attributes);
    else
        nvtxDomainMarkEx(domain, &attributes);
}

static void hear(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind == EDDY_TRACE_ENDS)
        (void)nvtxDomainRangePop(domain);
    else
        send(event);
}

/* ---- the tool ---- */

static void make_domain(void) {
    domain = nvtxDomainCreateA("eddy");
    for (uint32_t p = 0; p < EDDY_TRACE_PHASE_COUNT; p++)
        nvtxDomainNameCategoryA(domain, p + 1, eddy_trace_phase_name((eddy_trace_phase)p));
    nvtxPayloadSchemaAttr_t attributes = {.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME |
                                                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                                                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                                                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                                                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
                                          .name = "eddy",
                                          .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
                                          .entries = entries,
                                          .numEntries = sizeof(entries) / sizeof(*entries),
                                          .payloadStaticSize = sizeof(payload)};
    schema = nvtxPayloadSchemaRegister(domain, &attributes);
}

/* Nobody is registering a name. */
static void fork_child(void) {
    eddy_lock_init(&lock, EDDY_RANK_LISTENER);
}

void eddy_nvtx_look(void) {
    const char *tool = getenv("NVTX_INJECTION64_PATH");
    uint32_t place;
    if (!tool || !*tool || eddy_exchange_acq_rel(&is_served, true))
        return;
    eddy_process_at_fork_child(fork_child);
    make_domain();
    eddy_store_release(&is_attached, true);
    /* Where there is no room for one more listener, the tool sees nothing. */
    (void)!eddy_trace_add(&(eddy_trace_listener){hear, NULL, EDDY_TRACE_ALL_PHASES}, &place);
}

void eddy_nvtx_name_thread(const char *name) {
    if (eddy_load_acquire(&is_attached))
        nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
}

void eddy_nvtx_name_stream(void *stream, const char *name) {
    if (eddy_load_acquire(&is_attached))
        nvtxNameCuStreamA(stream, name);
}
