/* Writes the block of packed arguments (packed.h): begin, the views in their order, and then eddy_packed_prepare. */
#ifndef EDDY_INTERPRETER_CALL_PACKED_WRITER_H
#define EDDY_INTERPRETER_CALL_PACKED_WRITER_H

#include <interpreter/call/joint.h>
#include <interpreter/call/packed.h>
#include <string.h>

typedef struct eddy_packed_writer {
    eddy_packed_arguments *call;
    uint32_t words; /* written so far */
} eddy_packed_writer;

static inline uint32_t eddy_packed_writer_words(eddy_packed_writer *writer, const int64_t *values,
                                                int32_t count) {
    uint32_t at = writer->words;
    memcpy((int64_t *)(void *)writer->call + at, values, (size_t)count * sizeof(*values));
    writer->words += (uint32_t)count;
    return at;
}

/* The attributes follow the views, whose count is set. */
static inline void eddy_packed_writer_begin(eddy_packed_writer *writer, eddy_packed_arguments *call,
                                            const void *attributes) {
    size_t fixed = sizeof(*call) + (size_t)call->view_count * sizeof(*call->views);
    size_t bytes = call->op->kernel_attribute_bytes;
    writer->call = call;
    writer->words = (uint32_t)(fixed / sizeof(int64_t));
    call->attributes_at = writer->words;
    if (bytes > 0)
        memcpy((int64_t *)(void *)call + writer->words, attributes, bytes);
    writer->words += (uint32_t)((bytes + 7) / 8);
}

/* A view of an elementwise call, all of which share the joint dims. shape_number: of its dims before they were merged. */
static inline void eddy_packed_writer_joint(eddy_packed_writer *writer, int64_t i,
                                            const eddy_joint *joint, uint32_t shape_number) {
    eddy_packed_view *view = &writer->call->views[i];
    view->rank = (int8_t)joint->shape.rank;
    view->dims_at = writer->call->views[0].dims_at;
    if (i == 0)
        view->dims_at = eddy_packed_writer_words(writer, joint->shape.dims, joint->shape.rank);
    view->strides_at = eddy_packed_writer_words(writer, joint->strides[i], joint->shape.rank);
    view->shape_number = shape_number;
}

/* Room for a view's own dims, after which its strides go. */
static inline int64_t *eddy_packed_writer_view(eddy_packed_writer *writer, int64_t i,
                                               int32_t rank) {
    eddy_packed_view *view = &writer->call->views[i];
    view->rank = (int8_t)rank;
    view->dims_at = writer->words;
    view->strides_at = writer->words + (uint32_t)rank;
    writer->words += 2 * (uint32_t)rank;
    return (int64_t *)(void *)writer->call + view->dims_at;
}

static inline size_t eddy_packed_writer_bytes(const eddy_packed_writer *writer) {
    return writer->words * sizeof(int64_t);
}

#endif
