#include <stdint.h>
#include <string.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/graph.h>
#include <tests/fake_cuda/stream.h>
#include <tests/fake_cuda/touch.h>

/* Of capability 9.0, for kernels that ask for no more. */
#define SHARED_BYTES_MAX (48u << 10)
#define BLOCK_MAX 1024u
#define BLOCK_DEPTH_MAX 64u
#define GRID_WIDTH_MAX INT32_MAX
#define GRID_OTHER_MAX 65535u
#define EXTRA_MAX 8

static bool fits(const unsigned grid[3], const unsigned block[3], unsigned shared_bytes) {
    for (int d = 0; d < 3; d++)
        if (grid[d] == 0 || block[d] == 0 || block[d] > BLOCK_MAX)
            return false;
    return block[2] <= BLOCK_DEPTH_MAX && block[0] * block[1] <= BLOCK_MAX &&
           block[0] * block[1] * block[2] <= BLOCK_MAX && grid[0] <= GRID_WIDTH_MAX &&
           grid[1] <= GRID_OTHER_MAX && grid[2] <= GRID_OTHER_MAX &&
           shared_bytes <= SHARED_BYTES_MAX;
}

/* Reads pairs of a name and a value, up to a name 0. */
static bool read_extra(void **extra, const void **buffer, size_t *bytes) {
    const size_t *size = NULL;
    *buffer = NULL;
    int i = 0;
    for (; extra && i < EXTRA_MAX && extra[i]; i += 2) {
        if ((uintptr_t)extra[i] == 1)
            *buffer = extra[i + 1];
        else if ((uintptr_t)extra[i] == 2)
            size = extra[i + 1];
        else
            return false;
    }
    if (!extra || i >= EXTRA_MAX || !*buffer || !size)
        return false;
    *bytes = *size;
    return true;
}

eddy_cu_result cuLaunchKernel(eddy_cu_function handle, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, eddy_cu_stream stream_handle,
                              void **parameters, void **extra) {
    FAKE_BEGIN(cuLaunchKernel, FAKE_NEEDS_CONTEXT);
    unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    const fake_function *function = fake_module_function(handle, call.device);
    fake_stream *stream = fake_stream_of(stream_handle, call.device);
    if (!function || !stream)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    const void *buffer;
    size_t bytes;
    if (parameters || !fits(grid, block, shared_bytes) || !read_extra(extra, &buffer, &bytes) ||
        bytes != function->bytes)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    fake_piece *piece = fake_piece_create(FAKE_KERNEL, function->name, bytes);
    if (!piece)
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    piece->function = function;
    piece->handle = handle;
    piece->shared_bytes = shared_bytes;
    memcpy(piece->grid, grid, sizeof(grid));
    memcpy(piece->block, block, sizeof(block));
    memcpy(piece->parameters, buffer, bytes);
    if (stream->capture.is_invalid) {
        fake_piece_free(piece);
        return fake_call_end(&call, EDDY_CU_CAPTURE_INVALIDATED);
    }
    if (stream->capture.graph) {
        fake_graph_add(stream->capture.graph, piece);
        return fake_call_end(&call, 0);
    }
    fake_touch_kernel(stream, piece);
    fake_stream_launch(stream, piece);
    fake_module_use(handle, fake_stream_number(stream), stream->launched);
    return fake_call_end(&call, 0);
}
