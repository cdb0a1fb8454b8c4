/* Entries that launch copies, fills and writes of values; and those that take and give memory of a device. */
#include <stdatomic.h>
#include <stdlib.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/capture.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/host.h>
#include <tests/fake_cuda/stream.h>

/* ---- launches ---- */

static void add_touch(fake_piece *piece, uintptr_t begin, size_t bytes, bool is_write) {
    piece->touches[piece->touch_count++] = (fake_touch){begin, begin + bytes, is_write};
}

/* Takes the piece, whose bytes `to` and `from` (0: nothing) it touches. */
static eddy_cu_result launch(fake_call *call, eddy_cu_stream handle, fake_piece *piece,
                             uintptr_t to, uintptr_t from, size_t bytes) {
    fake_stream *stream = fake_stream_of(handle, call->device);
    if (!stream || !piece) {
        if (piece)
            fake_piece_free(piece);
        return fake_call_end(call, stream ? EDDY_CU_OUT_OF_MEMORY : EDDY_CU_INVALID_HANDLE);
    }
    if (stream->capture.graph) {
        bool is_taken = piece->kind == FAKE_WRITE && fake_options_read()->captures_writes;
        fake_piece_free(piece);
        if (!is_taken)
            (void)fake_capture_spoil(stream);
        return fake_call_end(call, is_taken ? 0 : EDDY_CU_CAPTURES_FIRST);
    }
    piece->to = to;
    piece->from = from;
    piece->bytes = bytes;
    if (from)
        add_touch(piece, from, bytes, false);
    add_touch(piece, to, bytes, true);
    fake_stream_launch(stream, piece);
    return fake_call_end(call, 0);
}

static bool is_devices(const fake_call *call, eddy_cu_address address) {
    return fake_memory_has(&call->device->memory, (uintptr_t)address);
}

/* Sides are told apart as their entry says: an address of the other side is refused. */
static eddy_cu_result copy(fake_call *call, const char *what, uintptr_t to, uintptr_t from,
                           size_t bytes, eddy_cu_stream stream) {
    if (bytes == 0)
        return fake_call_end(call,
                             fake_stream_of(stream, call->device) ? 0 : EDDY_CU_INVALID_HANDLE);
    return launch(call, stream, fake_piece_create(FAKE_COPY, what, 0), to, from, bytes);
}

/* atomic: relaxed */
static _Atomic long holding_copies;

long fake_cuda_holding_copies(void) {
    return atomic_load_explicit(&holding_copies, memory_order_relaxed);
}

/* The driver stages what is not pinned, and keeps the calling thread for that. */
static void look_at_host(uintptr_t begin, size_t bytes) {
    if (bytes > 0 && !fake_host_is_pinned(begin, begin + bytes))
        atomic_fetch_add_explicit(&holding_copies, 1, memory_order_relaxed);
}

eddy_cu_result cuMemcpyHtoDAsync_v2(eddy_cu_address to, const void *from, size_t bytes,
                                    eddy_cu_stream stream) {
    FAKE_BEGIN(cuMemcpyHtoDAsync_v2, FAKE_NEEDS_CONTEXT);
    if (bytes > 0 && (!is_devices(&call, to) || is_devices(&call, (uintptr_t)from) || !from))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    look_at_host((uintptr_t)from, bytes);
    return copy(&call, "copy to device", (uintptr_t)to, (uintptr_t)from, bytes, stream);
}

eddy_cu_result cuMemcpyDtoHAsync_v2(void *to, eddy_cu_address from, size_t bytes,
                                    eddy_cu_stream stream) {
    FAKE_BEGIN(cuMemcpyDtoHAsync_v2, FAKE_NEEDS_CONTEXT);
    if (bytes > 0 && (!is_devices(&call, from) || is_devices(&call, (uintptr_t)to) || !to))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    look_at_host((uintptr_t)to, bytes);
    return copy(&call, "copy to host", (uintptr_t)to, (uintptr_t)from, bytes, stream);
}

eddy_cu_result cuMemcpyDtoDAsync_v2(eddy_cu_address to, eddy_cu_address from, size_t bytes,
                                    eddy_cu_stream stream) {
    FAKE_BEGIN(cuMemcpyDtoDAsync_v2, FAKE_NEEDS_CONTEXT);
    if (bytes > 0 && (!is_devices(&call, from) || !is_devices(&call, to)))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    if (to < from + bytes && from < to + bytes && bytes > 0)
        fake_finding("overlap: copy on device from 0x%llx to 0x%llx, %llu bytes", from, to,
                     (unsigned long long)bytes);
    return copy(&call, "copy on device", (uintptr_t)to, (uintptr_t)from, bytes, stream);
}

/* Also without access to the peer: the driver stages it then. */
eddy_cu_result cuMemcpyPeerAsync(eddy_cu_address to, eddy_cu_context to_context,
                                 eddy_cu_address from, eddy_cu_context from_context, size_t bytes,
                                 eddy_cu_stream stream) {
    FAKE_BEGIN(cuMemcpyPeerAsync, FAKE_NEEDS_CONTEXT);
    const fake_device *there = fake_device_of(to_context), *here = fake_device_of(from_context);
    if (!there || !here || there->lost || here->lost)
        return fake_call_end(&call, EDDY_CU_INVALID_CONTEXT);
    if (bytes > 0 && (!fake_memory_has(&there->memory, (uintptr_t)to) ||
                      !fake_memory_has(&here->memory, (uintptr_t)from)))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    return copy(&call, "copy between devices", (uintptr_t)to, (uintptr_t)from, bytes, stream);
}

eddy_cu_result cuMemsetD8Async(eddy_cu_address to, unsigned char value, size_t bytes,
                               eddy_cu_stream stream) {
    FAKE_BEGIN(cuMemsetD8Async, FAKE_NEEDS_CONTEXT);
    if (!fake_stream_of(stream, call.device))
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (bytes == 0 || !is_devices(&call, to))
        return fake_call_end(&call, bytes ? EDDY_CU_INVALID_VALUE : 0);
    fake_piece *piece = fake_piece_create(FAKE_FILL, "fill", 0);
    if (piece)
        piece->value = value;
    return launch(&call, stream, piece, (uintptr_t)to, 0, bytes);
}

eddy_cu_result cuStreamWriteValue64_v2(eddy_cu_stream stream, eddy_cu_address address,
                                       uint64_t value, unsigned flags) {
    FAKE_BEGIN(cuStreamWriteValue64_v2, FAKE_NEEDS_CONTEXT);
    if (!fake_options_read()->has_stream_writes)
        return fake_call_end(&call, EDDY_CU_NOT_SUPPORTED);
    uintptr_t to = (uintptr_t)address;
    bool is_hosts = fake_host_covers(to, to + sizeof(value), NULL);
    if (to % sizeof(value) != 0 || flags > 1 || (!is_hosts && !is_devices(&call, address)))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    fake_piece *piece = fake_piece_create(FAKE_WRITE, "write of a value", 0);
    /* Flag 1 leaves out the barrier that orders it behind what comes before. */
    if (piece && is_hosts && flags == 0 && !(piece->clock = malloc(sizeof(*piece->clock)))) {
        fake_piece_free(piece);
        piece = NULL;
    }
    if (piece)
        piece->value = value;
    return launch(&call, stream, piece, to, 0, sizeof(value));
}

/* What the host has seen over before it writes the value comes before what is launched after that: no order follows from the wait. */
eddy_cu_result cuStreamWaitValue64_v2(eddy_cu_stream handle, eddy_cu_address address,
                                      uint64_t value, unsigned flags) {
    FAKE_BEGIN(cuStreamWaitValue64_v2, FAKE_NEEDS_CONTEXT);
    if (!fake_options_read()->has_stream_writes)
        return fake_call_end(&call, EDDY_CU_NOT_SUPPORTED);
    fake_stream *stream = fake_stream_of(handle, call.device);
    uintptr_t at = (uintptr_t)address;
    if (!stream)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (at % sizeof(value) != 0 || flags != EDDY_CU_AWAIT_AT_LEAST ||
        !fake_host_covers(at, at + sizeof(value), NULL))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    if (fake_capture_spoil(stream))
        return fake_call_end(&call, EDDY_CU_CAPTURES_FIRST);
    fake_piece *piece = fake_piece_create(FAKE_AWAIT, "wait for a value", 0);
    if (!piece)
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    piece->to = at;
    piece->value = value;
    fake_stream_launch(stream, piece);
    return fake_call_end(&call, 0);
}

/* ---- memory ---- */

eddy_cu_result cuMemAlloc_v2(eddy_cu_address *address, size_t bytes) {
    FAKE_BEGIN(cuMemAlloc_v2, FAKE_NEEDS_CONTEXT);
    if (!address || bytes == 0)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    uintptr_t taken =
        bytes <= INT64_MAX ? fake_memory_take(&call.device->memory, (int64_t)bytes) : 0;
    if (taken)
        *address = taken;
    return fake_call_end(&call, taken ? 0 : EDDY_CU_OUT_OF_MEMORY);
}

/* The driver would wait for all of the device, which nobody asks for who knows what is over. */
eddy_cu_result cuMemFree_v2(eddy_cu_address address) {
    FAKE_BEGIN(cuMemFree_v2, FAKE_NEEDS_CONTEXT);
    if (address == 0)
        return fake_call_end(&call, 0);
    fake_memory *memory = &call.device->memory;
    const fake_block *block = fake_memory_block(memory, (uintptr_t)address);
    if (!block) {
        fake_finding("free: no block begins at 0x%llx", address);
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    }
    fake_history_entry user;
    if (!fake_history_forget(&call.device->history, (uintptr_t)address,
                             (uintptr_t)address + (uintptr_t)block->bytes, &fake_host_clock, &user))
        fake_finding("free in use: of the block at 0x%llx, while %s on stream %u (piece %llu) is "
                     "not known to be over",
                     address, user.what, (unsigned)user.stream, (unsigned long long)user.number);
    fake_memory_give(memory, (uintptr_t)address);
    return fake_call_end(&call, 0);
}

/* Of memory that the driver does not know nothing is said. */
eddy_cu_result cuPointerGetAttribute(void *value, eddy_cu_pointer_attribute attribute,
                                     eddy_cu_address address) {
    FAKE_BEGIN(cuPointerGetAttribute, FAKE_NEEDS_CONTEXT);
    uintptr_t at = (uintptr_t)address;
    const fake_device *device = fake_device_with(at);
    bool is_known = device ? fake_memory_covers(&device->memory, at, at + 1, NULL)
                           : fake_host_is_pinned(at, at + 1);
    if (!value || !is_known)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    if (attribute == EDDY_CU_POINTER_MEMORY_TYPE)
        *(unsigned *)value = device ? EDDY_CU_MEMORY_DEVICE : EDDY_CU_MEMORY_HOST;
    else if (attribute == EDDY_CU_POINTER_DEVICE)
        *(int *)value = device ? device->ordinal : call.device->ordinal;
    else
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    return fake_call_end(&call, 0);
}
