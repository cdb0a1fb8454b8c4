/* The life of recorded functions, and what their options say. */
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <program/recorded_function.h>
#include <string.h>

#define MOST_BYTES (INT64_C(256) << 20)
#define MOST_DERIVED_BYTES (INT64_C(64) << 20)
#define EDGES_MOST 256

/* ---- buckets ---- */

static eddy_status check_edges(const int64_t *edges, int64_t count, int64_t most,
                               eddy_origin origin) {
    if (count < 0 || count > EDGES_MOST || (count > 0 && !edges))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%lld edges of buckets%s", (long long)count,
                         count < 0            ? ""
                         : count > EDGES_MOST ? ", and the most is 256"
                                              : ", but they are NULL");
    for (int64_t i = 0; i < count; i++)
        if (edges[i] < EDDY_SIZE_LEAST || (i > 0 && edges[i] <= edges[i - 1]))
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                             "the edge of bucket %lld is %lld: they increase from 2 or more",
                             (long long)i, (long long)edges[i]);
    if (count > 0 && edges[count - 1] < most)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "the last bucket ends at %lld, and the largest size is %lld",
                         (long long)edges[count - 1], (long long)most);
    return EDDY_OK;
}

static eddy_status check_buckets(const eddy_recorded_options *options, eddy_origin origin) {
    int64_t most = EDDY_HAS_OPTION(options, most_size) ? options->most_size : 0;
    bool has_edges = EDDY_HAS_OPTION(options, bucket_edge_count);
    int64_t derived =
        EDDY_HAS_OPTION(options, most_derived_bytes) ? options->most_derived_bytes : 0;
    if (most != 0 && most < EDDY_SIZE_LEAST)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the largest size is %lld: it is 2 or more",
                         (long long)most);
    if (derived < 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%lld bytes of derived programs",
                         (long long)derived);
    eddy_status status =
        has_edges ? check_edges(options->bucket_edges, options->bucket_edge_count, most, origin)
                  : EDDY_OK;
    bool has_buckets = most > 0 || (has_edges && options->bucket_edge_count > 0);
    if (status == EDDY_OK && has_buckets && !EDDY_OPTION(options, foretells_shapes))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "sizes have buckets, and foretells_shapes is not set");
    return status;
}

/* The last bucket ends at the largest size. */
static bool copy_edges(eddy_recorded *recorded, const eddy_recorded_options *options) {
    int64_t most = EDDY_HAS_OPTION(options, most_size) ? options->most_size : 0;
    int64_t given = EDDY_HAS_OPTION(options, bucket_edge_count) ? options->bucket_edge_count : 0;
    const int64_t *edges = given > 0 ? options->bucket_edges : &most;
    int64_t count = given > 0 ? given : most > 0;
    if (count == 0)
        return true;
    while (count > 1 && most > 0 && edges[count - 2] >= most)
        count--;
    recorded->edges =
        eddy_memory_acquire((size_t)count * sizeof(*recorded->edges), EDDY_MEMORY_PROGRAM);
    if (!recorded->edges)
        return false;
    memcpy(recorded->edges, edges, (size_t)count * sizeof(*recorded->edges));
    recorded->edge_count = count;
    if (most > 0)
        recorded->edges[count - 1] = most;
    return true;
}

/* ---- life ---- */

static eddy_status check_options(eddy_recorded_body *body, int64_t output_count,
                                 const eddy_recorded_options *options, eddy_origin origin) {
    if (!body || output_count < 0 || output_count > EDDY_RECORDED_INPUTS_MOST)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         body ? "%lld outputs" : "the function is NULL, of %lld outputs",
                         (long long)output_count);
    if (EDDY_HAS_OPTION(options, most_bytes) && options->most_bytes < 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "most_bytes is %lld",
                         (long long)options->most_bytes);
    return check_buckets(options, origin);
}

eddy_recorded *eddy_recorded_create(eddy_recorded_body *body, void *context, int64_t output_count,
                                    const eddy_recorded_options *options) {
    eddy_origin origin = EDDY_ORIGIN("recorded_create");
    if (check_options(body, output_count, options, origin) != EDDY_OK)
        return NULL;
    eddy_recorded *recorded = eddy_memory_acquire_zeroed(sizeof(*recorded), EDDY_MEMORY_PROGRAM);
    if (!recorded || !copy_edges(recorded, options)) {
        eddy_memory_release(recorded, sizeof(*recorded), EDDY_MEMORY_PROGRAM);
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
        return NULL;
    }
    eddy_store_relaxed(&recorded->references, 1u);
    recorded->body = body;
    recorded->context = context;
    recorded->output_count = output_count;
    recorded->is_strict = EDDY_OPTION(options, is_strict);
    recorded->foretells = EDDY_OPTION(options, foretells_shapes);
    recorded->most_bytes = MOST_BYTES;
    if (EDDY_OPTION(options, most_bytes))
        recorded->most_bytes = options->most_bytes;
    recorded->most_derived_bytes = MOST_DERIVED_BYTES;
    if (EDDY_OPTION(options, most_derived_bytes))
        recorded->most_derived_bytes = options->most_derived_bytes;
    return recorded;
}

eddy_recorded *eddy_recorded_retain(eddy_recorded *recorded) {
    if (recorded)
        eddy_add_relaxed(&recorded->references, 1u);
    return recorded;
}

void eddy_recorded_release(eddy_recorded **recorded) {
    eddy_recorded *released = recorded ? *recorded : NULL;
    if (!released)
        return;
    *recorded = NULL;
    if (eddy_sub_acq_rel(&released->references, 1u) != 1)
        return;
    eddy_recorded_drop(&(eddy_recorded_dropped){released->first, released->classes});
    eddy_memory_release(released->edges, (size_t)released->edge_count * sizeof(*released->edges),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(released, sizeof(*released), EDDY_MEMORY_PROGRAM);
}
