#include <program/lower.h>
#include <program/quiet.h>
#include <program/shape_class.h>
#include <stdio.h>

void eddy_shape_bucket_fini(eddy_shape_bucket *bucket) {
    for (int i = 0; i < 2; i++)
        eddy_program_release(&bucket->lowered[i]);
}

int64_t eddy_shape_bucket_bytes(const eddy_shape_bucket *bucket) {
    int64_t bytes = (int64_t)sizeof(*bucket);
    for (int i = 0; i < 2 && bucket->lowered[i]; i++)
        bytes += eddy_program_bytes(bucket->lowered[i]);
    return bytes;
}

/* ---- what the sizes have in common ---- */

/* A program being made for a size of the bucket. */
typedef struct making {
    eddy_shape_class *class;
    eddy_shape_bucket *bucket;
    eddy_lock *lock;
    eddy_origin origin;
    int64_t size;
    eddy_program *lowered[2]; /* a reference each, or NULL */
    int64_t sizes[2];
    char reason[200]; /* why it is built in full */
} making;

static int64_t rest_of(int64_t number, int64_t step) {
    return (number % step + step) % step;
}

static bool is_between(const making *m, int64_t size) {
    return size >= m->sizes[1] && size <= m->sizes[0];
}

/* Foretells the program of the size that is nearest to one end of the bucket, of those of which one follows: the least is tried, then others in strides that double.
 * way: 1 from the least size on, -1 from the largest. INVALID_ARGUMENT where there is none. */
static eddy_status foretell_end(making *m, int which, int64_t step, int way) {
    eddy_status status = EDDY_INVALID_ARGUMENT;
    int64_t first = m->sizes[which], last = m->sizes[1 - which], stride = 0;
    while (status == EDDY_INVALID_ARGUMENT && (last - first) * way > stride) {
        m->sizes[which] = first + way * stride;
        status = eddy_shape_class_foretell(m->class, (eddy_sizes){{m->sizes[which]}},
                                           &m->lowered[which]);
        stride = stride == 0 ? step : stride > INT64_MAX / 2 ? INT64_MAX : 2 * stride;
    }
    return status;
}

/* The largest and the least size that differ from a recorded one by steps, and of which programs follow. */
static eddy_status foretell_ends(making *m, int64_t recorded, int64_t step) {
    m->sizes[0] = m->bucket->most - rest_of(m->bucket->most - recorded, step);
    m->sizes[1] = m->bucket->least + rest_of(recorded - m->bucket->least, step);
    eddy_status status = foretell_end(m, 1, step, 1);
    if (status == EDDY_OK)
        status = foretell_end(m, 0, step, -1);
    if (status == EDDY_INVALID_ARGUMENT)
        snprintf(m->reason, sizeof(m->reason), "programs of two sizes do not follow");
    return status;
}

/* What comes of an end's size that is refused is the reason. */
static eddy_status lower(making *m, int64_t recorded, int64_t step) {
    eddy_error failed;
    eddy_quiet q;
    eddy_quiet_begin(&q);
    eddy_status status = foretell_ends(m, recorded, step);
    if (status == EDDY_OK)
        status = eddy_program_lower(m->lowered[0], m->lowered[1], m->origin);
    eddy_quiet_end(&q, &failed);
    if (status == EDDY_OK)
        return EDDY_OK;
    for (int i = 0; i < 2; i++)
        eddy_program_release(&m->lowered[i]);
    if (failed.status != EDDY_OK)
        snprintf(m->reason, sizeof(m->reason), "%.180s", failed.message);
    return status;
}

/* Of two threads the later one's are kept. */
static void keep_lowered(const making *m, int64_t step) {
    eddy_program *old[2];
    eddy_lock_acquire(m->lock);
    for (int i = 0; i < 2; i++) {
        old[i] = m->bucket->lowered[i];
        m->bucket->lowered[i] = eddy_program_retain(m->lowered[i]);
        m->bucket->sizes[i] = m->sizes[i];
    }
    m->bucket->step = step;
    snprintf(m->bucket->reason, sizeof(m->bucket->reason), "%s", m->reason);
    eddy_lock_release(m->lock);
    for (int i = 0; i < 2; i++)
        eddy_program_release(&old[i]);
}

/* Takes what is in common, which is made where it is not there yet. OUT_OF_MEMORY. */
static eddy_status find_lowered(making *m) {
    eddy_lock_acquire(m->lock);
    int64_t step = eddy_shape_class_step(m->class), recorded = eddy_shape_class_least(m->class);
    bool is_there = m->bucket->step == step;
    for (int i = 0; i < 2 && is_there; i++) {
        m->lowered[i] = eddy_program_retain(m->bucket->lowered[i]);
        m->sizes[i] = m->bucket->sizes[i];
    }
    if (is_there)
        snprintf(m->reason, sizeof(m->reason), "%s", m->bucket->reason);
    eddy_lock_release(m->lock);
    if (is_there)
        return EDDY_OK;
    if (lower(m, recorded, step) == EDDY_OUT_OF_MEMORY)
        return EDDY_OUT_OF_MEMORY;
    keep_lowered(m, step);
    return EDDY_OK;
}

/* ---- a program ---- */

static eddy_status build(eddy_program **program, eddy_origin origin, eddy_error *failed) {
    eddy_quiet q;
    eddy_quiet_begin(&q);
    eddy_status status = eddy_program_build(*program, origin);
    eddy_quiet_end(&q, failed);
    if (status != EDDY_OK)
        eddy_program_release(program);
    return status;
}

static eddy_status derive(making *m, eddy_program **program) {
    const eddy_sizes known[] = {{{m->sizes[0]}}, {{m->sizes[1]}}};
    eddy_affine affine;
    eddy_error failed = {.message = "nothing follows from its largest and its least size"};
    eddy_status status = EDDY_INVALID_ARGUMENT;
    if (eddy_affine_of(known, 1, (eddy_sizes){{m->size}}, &affine))
        status = eddy_program_foretell((const eddy_program *const *)m->lowered, &affine, program);
    if (status == EDDY_OK)
        status = build(program, m->origin, &failed);
    if (status != EDDY_OK)
        snprintf(m->reason, sizeof(m->reason), "%.180s", failed.message);
    return status;
}

static eddy_status build_exact(const eddy_shape_class *class, eddy_sizes sizes, eddy_origin origin,
                               eddy_program **program) {
    eddy_error failed;
    eddy_status status = eddy_shape_class_foretell(class, sizes, program);
    return status == EDDY_OK ? build(program, origin, &failed) : status;
}

static void count(const making *m, bool is_derived) {
    eddy_shape_bucket *bucket = m->bucket;
    eddy_lock_acquire(m->lock);
    bucket->derived += is_derived;
    bucket->exact += !is_derived;
    if (!is_derived)
        snprintf(bucket->reason, sizeof(bucket->reason), "%s", m->reason);
    if (bucket->seen_least == 0 || m->size < bucket->seen_least)
        bucket->seen_least = m->size;
    if (m->size > bucket->seen_most)
        bucket->seen_most = m->size;
    eddy_lock_release(m->lock);
}

static eddy_status make_in_bucket(making *m, eddy_program **program) {
    eddy_status status = find_lowered(m);
    if (status != EDDY_OK)
        return status;
    status = EDDY_INVALID_ARGUMENT;
    if (m->lowered[0] && is_between(m, m->size))
        status = derive(m, program);
    else if (m->lowered[0])
        snprintf(m->reason, sizeof(m->reason), "the size %lld is not between %lld and %lld",
                 (long long)m->size, (long long)m->sizes[1], (long long)m->sizes[0]);
    bool is_derived = status == EDDY_OK;
    if (!is_derived && status != EDDY_OUT_OF_MEMORY)
        status = build_exact(m->class, (eddy_sizes){{m->size}}, m->origin, program);
    if (status == EDDY_OK)
        count(m, is_derived);
    return status;
}

eddy_status eddy_shape_class_make(eddy_shape_class *class, eddy_lock *lock, eddy_sizes sizes,
                                  eddy_origin origin, eddy_program **program) {
    making m = {.class = class,
                .bucket = eddy_shape_class_bucket(class, sizes),
                .lock = lock,
                .origin = origin,
                .size = sizes.of[0]};
    if (!m.bucket)
        return build_exact(class, sizes, origin, program);
    eddy_status status = make_in_bucket(&m, program);
    for (int i = 0; i < 2; i++)
        eddy_program_release(&m.lowered[i]);
    return status;
}
