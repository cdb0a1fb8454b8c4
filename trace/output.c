#include <trace/output.h>

#include <base/fork_gate.h>
#include <base/memory.h>
#include <base/status.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <trace/gzip.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 18)
/* Beyond the limit: the last line, and what a compressor holds back. */
#define RESERVE_BYTES 65536

static void fail(eddy_output *output, int error) {
    if (output->state != EDDY_OUTPUT_FAILED)
        output->error = error;
    output->state = EDDY_OUTPUT_FAILED;
}

static void write_all(void *context, const char *bytes, size_t count) {
    eddy_output *output = context;
    while (count > 0 && output->state != EDDY_OUTPUT_FAILED) {
        ssize_t written = write(output->fd, bytes, count);
        if (written < 0 && errno != EINTR)
            fail(output, errno);
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
            output->written += written;
        }
    }
}

static bool is_compressed(const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

/* No fork comes between: a child frees what is left. */
static void free_all(eddy_output *output) {
    eddy_fork_gate_enter();
    eddy_gzip_free(output->gzip);
    eddy_memory_release(output->buffer, BUFFER_BYTES, EDDY_MEMORY_TRACE);
    /* Some file systems tell of a failure only now. */
    if (output->fd >= 0 && close(output->fd) != 0)
        fail(output, errno);
    output->fd = -1;
    output->gzip = NULL;
    output->buffer = NULL;
    eddy_fork_gate_leave();
}

eddy_status eddy_output_open(eddy_output *output, const char *path, int64_t limit,
                             eddy_origin origin) {
    *output = (eddy_output){.fd = -1, .limit = limit};
    eddy_status status = EDDY_OK;
    output->buffer = eddy_memory_acquire(BUFFER_BYTES, EDDY_MEMORY_TRACE);
    if (is_compressed(path))
        status = eddy_gzip_make(&output->gzip, origin);
    if (status == EDDY_OK && !output->buffer)
        status = eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    if (status == EDDY_OK) {
        /* Not as a pipe opens that nobody reads. */
        output->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
        if (output->fd < 0)
            status = eddy_fail(EDDY_IO, origin, "%.200s cannot be written: %s", path,
                               strerrordesc_np(errno));
        else
            (void)fcntl(output->fd, F_SETFL, 0);
    }
    if (status != EDDY_OK)
        free_all(output);
    return status;
}

/* Compressed bytes that are still in the compressor are not counted: RESERVE_BYTES are more. */
static void hand_over(eddy_output *output, bool is_whole) {
    if (output->gzip)
        eddy_gzip_put(output->gzip, output->buffer, output->used, is_whole, write_all, output);
    else
        write_all(output, output->buffer, output->used);
    output->used = 0;
    output->is_held = output->gzip && !is_whole;
    if (output->state == EDDY_OUTPUT_OPEN &&
        output->written + (int64_t)BUFFER_BYTES + RESERVE_BYTES > output->limit)
        output->state = EDDY_OUTPUT_FULL;
}

char *eddy_output_line(eddy_output *output) {
    if (output->used + EDDY_OUTPUT_LINE_BYTES > BUFFER_BYTES)
        hand_over(output, false);
    return output->buffer + output->used;
}

void eddy_output_commit(eddy_output *output, const char *end) {
    if (output->state == EDDY_OUTPUT_OPEN)
        output->used = (size_t)(end - output->buffer);
}

void eddy_output_flush(eddy_output *output, bool is_whole) {
    if (output->used > 0 || (is_whole && output->is_held))
        hand_over(output, is_whole);
}

void eddy_output_end(eddy_output *output, const char *line, size_t bytes) {
    eddy_output_flush(output, false);
    memcpy(output->buffer, line, bytes);
    output->used = bytes;
    hand_over(output, false);
    if (output->gzip)
        eddy_gzip_end(output->gzip, write_all, output);
    free_all(output);
}

void eddy_output_forget(eddy_output *output) {
    free_all(output);
}
