#include <interpreter/host/row_major.h>

#include <string.h>

/* Elements of a slice: some 100 us for scattered elements. Less is not worth a second thread. */
#define SLICE_BYTES ((size_t)128 << 10)

typedef struct pack_job {
    const char *source; /* the first element */
    char *target;
    int64_t bytes; /* of an element */
    int32_t rank;  /* 1 or more */
    int64_t dims[EDDY_RANK_MAX];
    int64_t strides[1][EDDY_RANK_MAX]; /* bytes */
} pack_job;

static inline void pack_apart(const char *source, char *target, int64_t count, int64_t stride,
                              size_t bytes) {
    for (int64_t i = 0; i < count; i++)
        memcpy(target + i * (int64_t)bytes, source + i * stride, bytes);
}

static void pack_row(const char *source, char *target, int64_t count, int64_t stride,
                     int64_t bytes) {
    if (stride == bytes) {
        memcpy(target, source, (size_t)(count * bytes));
        return;
    }
    /* Sizes that the compiler knows are single loads and stores. */
    switch (bytes) {
    case 1:
        pack_apart(source, target, count, stride, 1);
        break;
    case 2:
        pack_apart(source, target, count, stride, 2);
        break;
    case 4:
        pack_apart(source, target, count, stride, 4);
        break;
    default:
        pack_apart(source, target, count, stride, 8);
    }
}

/* Elements `begin` to `end` in row-major order: the rest of a row, whole rows, the beginning of one. */
static void pack_slice(void *context, int64_t begin, int64_t end) {
    const pack_job *job = context;
    int32_t last = job->rank - 1;
    int64_t index[EDDY_RANK_MAX], rest = begin;
    const char *at = job->source;
    for (int32_t d = last; d >= 0; d--) {
        index[d] = rest % job->dims[d];
        rest /= job->dims[d];
        at += index[d] * job->strides[0][d];
    }
    while (begin < end) {
        int64_t count = job->dims[last] - index[last];
        if (count > end - begin)
            count = end - begin;
        pack_row(at, job->target + begin * job->bytes, count, job->strides[0][last], job->bytes);
        begin += count;
        at -= index[last] * job->strides[0][last];
        index[last] = 0;
        for (int32_t d = last - 1; d >= 0; d--) {
            at += job->strides[0][d];
            if (++index[d] < job->dims[d])
                break;
            at -= job->strides[0][d] * job->dims[d];
            index[d] = 0;
        }
    }
}

void eddy_row_major_copy(const eddy_layout *layout, size_t element_bytes, const char *source,
                         char *target, eddy_kernel_team *team) {
    int64_t count;
    if (!eddy_shape_count(layout->rank, layout->dims, &count) || count == 0)
        return;
    pack_job job = {.source = source + layout->offset * (int64_t)element_bytes,
                    .target = target,
                    .bytes = (int64_t)element_bytes,
                    .rank = layout->rank};
    memcpy(job.dims, layout->dims, sizeof(job.dims));
    memcpy(job.strides[0], layout->strides, sizeof(job.strides[0]));
    eddy_layout_collapse(&job.rank, job.dims, job.strides, 1);
    for (int32_t d = 0; d < job.rank; d++)
        job.strides[0][d] *= job.bytes;
    if (job.rank == 0) {
        job.rank = 1;
        job.dims[0] = 1;
        job.strides[0][0] = job.bytes;
    }
    team->parallel_for(team, count, (int64_t)(SLICE_BYTES / element_bytes), pack_slice, &job);
}
