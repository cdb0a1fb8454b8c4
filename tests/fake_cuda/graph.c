#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/capture.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/graph.h>
#include <tests/fake_cuda/handle.h>
#include <tests/fake_cuda/touch.h>

#define GRAPHS 4096
/* CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED. */
#define UPDATE_TOPOLOGY_CHANGED 2

static fake_graph graphs[GRAPHS]; /* lock: the fake's */

/* ---- places ---- */

static fake_graph *take_place(fake_device *device, bool is_exec) {
    for (uint32_t g = 0; g < GRAPHS; g++) {
        fake_graph *graph = &graphs[g];
        if (graph->device)
            continue;
        *graph =
            (fake_graph){.device = device, .generation = graph->generation + 1, .is_exec = is_exec};
        graph->last = &graph->first;
        return graph;
    }
    return NULL;
}

fake_graph *fake_graph_create(fake_device *device) {
    return take_place(device, false);
}

void *fake_graph_handle(const fake_graph *graph) {
    return fake_handle(graph->is_exec ? FAKE_GRAPH_EXEC : FAKE_GRAPH, graph->generation,
                       (uint32_t)(graph - graphs));
}

static fake_graph *find(const void *handle, bool is_exec, const fake_device *device) {
    uint64_t generation;
    uint32_t index;
    if (!fake_handle_read(handle, is_exec ? FAKE_GRAPH_EXEC : FAKE_GRAPH, &generation, &index) ||
        index >= GRAPHS)
        return NULL;
    fake_graph *graph = &graphs[index];
    return graph->device == device && graph->generation == generation && !graph->is_open ? graph
                                                                                         : NULL;
}

static void clear(fake_graph *graph) {
    while (graph->first) {
        fake_piece *next = graph->first->next;
        fake_piece_free(graph->first);
        graph->first = next;
    }
    graph->last = &graph->first;
    graph->count = 0;
}

void fake_graph_free(fake_graph *graph) {
    clear(graph);
    graph->device = NULL;
}

void fake_graph_drop(const fake_device *device) {
    for (int g = 0; g < GRAPHS; g++)
        if (graphs[g].device == device)
            fake_graph_free(&graphs[g]);
}

int fake_graph_count(void) {
    int count = 0;
    for (int g = 0; g < GRAPHS; g++)
        count += graphs[g].device != NULL;
    return count;
}

/* ---- kernels ---- */

void fake_graph_add(fake_graph *graph, fake_piece *piece) {
    piece->next = NULL;
    *graph->last = piece;
    graph->last = &piece->next;
    graph->count++;
}

static fake_piece *copy_of(const fake_piece *piece) {
    size_t bytes = piece->function->bytes;
    fake_piece *copy = fake_piece_create(FAKE_KERNEL, piece->what, bytes);
    if (!copy)
        fake_abort("no memory for a piece of a graph");
    memcpy(copy, piece, sizeof(*piece));
    copy->next = NULL;
    memcpy(copy->parameters, piece->parameters, bytes);
    return copy;
}

static void copy_all(fake_graph *to, const fake_graph *from) {
    clear(to);
    for (const fake_piece *piece = from->first; piece; piece = piece->next)
        fake_graph_add(to, copy_of(piece));
}

/* ---- entries ---- */

eddy_cu_result cuGraphInstantiateWithFlags(eddy_cu_graph_exec *made, eddy_cu_graph handle,
                                           unsigned long long flags) {
    FAKE_BEGIN(cuGraphInstantiateWithFlags, FAKE_NEEDS_CONTEXT);
    const fake_graph *graph = find(handle, false, call.device);
    if (!graph || !made || flags != 0)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    fake_graph *exec = take_place(call.device, true);
    if (!exec)
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    copy_all(exec, graph);
    *made = fake_graph_handle(exec);
    return fake_call_end(&call, 0);
}

/* Launches that were made stay as they were. */
eddy_cu_result cuGraphExecUpdate_v2(eddy_cu_graph_exec exec_handle, eddy_cu_graph handle,
                                    eddy_cu_graph_update *why) {
    FAKE_BEGIN(cuGraphExecUpdate_v2, FAKE_NEEDS_CONTEXT);
    const fake_graph *graph = find(handle, false, call.device);
    fake_graph *exec = find(exec_handle, true, call.device);
    if (!graph || !exec || !why)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    *why = (eddy_cu_graph_update){0};
    if (graph->count != exec->count) {
        why->result = UPDATE_TOPOLOGY_CHANGED;
        return fake_call_end(&call, EDDY_CU_GRAPH_UPDATE_REFUSED);
    }
    copy_all(exec, graph);
    return fake_call_end(&call, 0);
}

static void launch(fake_stream *stream, const fake_piece *kernel) {
    if (fake_module_function(kernel->handle, stream->device) != kernel->function) {
        fake_finding("a graph launches %s, whose module is gone", kernel->what);
        return;
    }
    fake_piece *piece = copy_of(kernel);
    fake_touch_kernel(stream, piece);
    fake_stream_launch(stream, piece);
    fake_module_use(kernel->handle, fake_stream_number(stream), stream->launched);
}

eddy_cu_result cuGraphLaunch(eddy_cu_graph_exec handle, eddy_cu_stream stream_handle) {
    FAKE_BEGIN(cuGraphLaunch, FAKE_NEEDS_CONTEXT);
    const fake_graph *exec = find(handle, true, call.device);
    fake_stream *stream = fake_stream_of(stream_handle, call.device);
    if (!exec || !stream)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (fake_capture_spoil(stream))
        return fake_call_end(&call, EDDY_CU_CAPTURES_FIRST);
    for (const fake_piece *kernel = exec->first; kernel; kernel = kernel->next)
        launch(stream, kernel);
    return fake_call_end(&call, 0);
}

/* What was launched of it still runs. */
static eddy_cu_result destroy(fake_call *call, const void *handle, bool is_exec) {
    fake_graph *graph = find(handle, is_exec, call->device);
    if (!graph)
        return fake_call_end(call, EDDY_CU_INVALID_HANDLE);
    fake_graph_free(graph);
    return fake_call_end(call, 0);
}

eddy_cu_result cuGraphExecDestroy(eddy_cu_graph_exec handle) {
    FAKE_BEGIN(cuGraphExecDestroy, FAKE_NEEDS_CONTEXT);
    return destroy(&call, handle, true);
}

eddy_cu_result cuGraphDestroy(eddy_cu_graph handle) {
    FAKE_BEGIN(cuGraphDestroy, FAKE_NEEDS_CONTEXT);
    return destroy(&call, handle, false);
}
