#include <program/shape_class.h>

#include <base/memory.h>
#include <base/number.h>
#include <string.h>

/* ---- life ---- */

static bool copy_keys(eddy_shape_class *class, const eddy_shape_point *points) {
    for (int32_t i = 0; i < class->known_count; i++) {
        class->keys[i] = eddy_memory_acquire(class->key_bytes, EDDY_MEMORY_PROGRAM);
        if (!class->keys[i])
            return false;
        memcpy(class->keys[i], points[i].key, class->key_bytes);
    }
    return true;
}

/* An input that was elsewhere at another size is no tensor of the function's own. */
static bool copy_inputs(eddy_shape_class *class, const eddy_shape_point *points) {
    size_t bytes = (size_t) class->input_count * sizeof(*class->inputs);
    class->inputs = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    for (int64_t i = 0; class->inputs && i < class->input_count; i++) {
        const eddy_signature_input *first = &points[0].inputs[i];
        class->inputs[i] = *first;
        for (int32_t p = 1; p < class->known_count; p++) {
            const eddy_signature_input *other = &points[p].inputs[i];
            class->inputs[i].is_fixed &= other->is_fixed && first->storage == other->storage &&
                                         first->generation == other->generation &&
                                         first->offset == other->offset;
        }
    }
    return class->inputs != NULL;
}

/* Those of the two sizes are checked as soon as the class is. */
static bool make_buckets(eddy_shape_class *class, const int64_t *edges, int64_t edge_count) {
    size_t bytes = (size_t)edge_count * sizeof(*class->buckets);
    class->buckets = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    class->bucket_count = edge_count;
    if (!class->buckets)
        return false;
    for (int64_t i = 0; i < edge_count; i++)
        class->buckets[i] = (eddy_shape_bucket){.least = i > 0 ? edges[i - 1] + 1 : EDDY_SIZE_LEAST,
                                                .most = edges[i]};
    for (int32_t i = 0; i < class->known_count; i++) {
        eddy_shape_bucket *bucket = eddy_shape_class_bucket(class, class->sizes[i]);
        if (bucket)
            bucket->is_checked = true;
    }
    return true;
}

/* Of as many sizes. */
static bool is_not_above(eddy_sizes a, eddy_sizes b) {
    return a.of[0] <= b.of[0] && a.of[1] <= b.of[1];
}

/* Those that it makes superfluous leave. is_least: it is kept where none is below it, else where none is above. */
static void add_end(eddy_shape_ends *ends, eddy_sizes sizes, bool is_least) {
    int32_t kept = 0;
    for (int32_t i = 0; i < ends->count; i++)
        if (is_least ? is_not_above(ends->items[i], sizes) : is_not_above(sizes, ends->items[i]))
            return;
    for (int32_t i = 0; i < ends->count; i++)
        if (is_least ? !is_not_above(sizes, ends->items[i]) : !is_not_above(ends->items[i], sizes))
            ends->items[kept++] = ends->items[i];
    ends->count = kept;
    if (kept < EDDY_SHAPE_CLASS_ENDS)
        ends->items[ends->count++] = sizes;
}

/* One more recorded size. */
static void widen(eddy_shape_class *class, eddy_sizes sizes) {
    add_end(&class->least, sizes, true);
    add_end(&class->most, sizes, false);
    eddy_size_lattice_add(&class->lattice, class->sizes[0], sizes);
}

static bool has_same_key_bytes(const eddy_shape_point *points, int32_t count) {
    for (int32_t i = 1; i < count; i++)
        if (points[i].key_bytes != points[0].key_bytes)
            return false;
    return true;
}

eddy_shape_class *eddy_shape_class_create(const eddy_shape_point *points, int32_t count,
                                          uint64_t tape_changes, const int64_t *edges,
                                          int64_t edge_count) {
    const void *keys[EDDY_KNOWN_MOST];
    eddy_key_sizes at;
    for (int32_t i = 0; i < count; i++)
        keys[i] = points[i].key;
    if (!has_same_key_bytes(points, count) ||
        !eddy_signature_keys_have_sizes(keys, count / 2, points[0].key_bytes, &at))
        return NULL;
    eddy_shape_class *class = eddy_memory_acquire_zeroed(sizeof(*class), EDDY_MEMORY_PROGRAM);
    if (!class)
        return NULL;
    *class = (eddy_shape_class){.at = at,
                                .known_count = count,
                                .key_bytes = points[0].key_bytes,
                                .input_count = points[0].input_count,
                                .tape_changes = tape_changes};
    eddy_store_relaxed(&class->references, 1u);
    for (int32_t i = 0; i < count; i++) {
        class->programs[i] = eddy_program_retain(points[i].program);
        (void)eddy_signature_key_is_foretold(keys, &at, keys[i], class->key_bytes,
                                             &class->sizes[i]);
    }
    for (int32_t i = 0; i < count; i++)
        widen(class, class->sizes[i]);
    if (copy_keys(class, points) && copy_inputs(class, points) &&
        make_buckets(class, edges, at.count == 1 ? edge_count : 0))
        return class;
    eddy_shape_class_release(class);
    return NULL;
}

eddy_shape_class *eddy_shape_class_retain(eddy_shape_class *class) {
    if (class)
        eddy_add_relaxed(&class->references, 1u);
    return class;
}

void eddy_shape_class_release(eddy_shape_class *class) {
    if (!class || eddy_sub_acq_rel(&class->references, 1u) != 1)
        return;
    for (int32_t i = 0; i < class->known_count; i++) {
        eddy_program_release(&class->programs[i]);
        eddy_memory_release(class->keys[i], class->key_bytes, EDDY_MEMORY_PROGRAM);
    }
    eddy_memory_release(class->inputs, (size_t) class->input_count * sizeof(*class->inputs) + 1,
                        EDDY_MEMORY_PROGRAM);
    for (int64_t i = 0; class->buckets && i < class->bucket_count; i++)
        eddy_shape_bucket_fini(&class->buckets[i]);
    eddy_memory_release(class->buckets, (size_t) class->bucket_count * sizeof(*class->buckets) + 1,
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(class, sizeof(*class), EDDY_MEMORY_PROGRAM);
}

int64_t eddy_shape_class_bytes(const eddy_shape_class *class) {
    int64_t bytes = (int64_t)(sizeof(*class) + (size_t) class->known_count * class->key_bytes +
                              (size_t) class->input_count * sizeof(*class->inputs));
    for (int32_t i = 0; i < class->known_count; i++)
        bytes += eddy_program_bytes(class->programs[i]);
    for (int64_t i = 0; i < class->bucket_count; i++)
        bytes += eddy_shape_bucket_bytes(&class->buckets[i]);
    return bytes;
}

/* ---- sizes ---- */

bool eddy_shape_class_has(const eddy_shape_class *class, const void *key, size_t key_bytes,
                          eddy_sizes *sizes) {
    return key_bytes == class->key_bytes &&
           eddy_signature_key_is_foretold((const void *const *)class->keys, &class->at, key,
                                          key_bytes, sizes);
}

bool eddy_shape_class_fits_tape(const eddy_shape_class *class) {
    return eddy_signature_fits_tape(class->programs[class->known_count - 1], class->tape_changes);
}

eddy_shape_bucket *eddy_shape_class_bucket(const eddy_shape_class *class, eddy_sizes sizes) {
    for (int64_t i = 0; i < class->bucket_count; i++)
        if (sizes.of[0] >= class->buckets[i].least && sizes.of[0] <= class->buckets[i].most)
            return &class->buckets[i];
    return NULL;
}

int64_t eddy_shape_class_step(const eddy_shape_class *class) {
    int64_t step = (int64_t) class->lattice.rows[0][0];
    return step < 0 ? -step : step;
}

int64_t eddy_shape_class_least(const eddy_shape_class *class) {
    return class->least.items[0].of[0];
}

static bool is_between(const eddy_shape_class *class, eddy_sizes sizes) {
    bool is_above = false, is_below = false;
    for (int32_t i = 0; i < class->least.count; i++)
        is_above |= is_not_above(class->least.items[i], sizes);
    for (int32_t i = 0; i < class->most.count; i++)
        is_below |= is_not_above(sizes, class->most.items[i]);
    return is_above && is_below;
}

bool eddy_shape_class_knows(const eddy_shape_class *class, eddy_sizes sizes) {
    const eddy_shape_bucket *bucket = eddy_shape_class_bucket(class, sizes);
    bool is_within = bucket ? bucket->is_checked && !bucket->is_given_up : is_between(class, sizes);
    return class->is_checked && !class->is_given_up && is_within &&
           eddy_size_lattice_has(&class->lattice, class->sizes[0], sizes);
}

/* Whether a recording of these sizes says more than the programs that are known. */
static bool checks(const eddy_shape_class *class, eddy_sizes sizes) {
    for (int32_t i = 0; class->at.count > 1 && i < class->known_count; i++)
        if (sizes.of[0] == class->sizes[i].of[0] || sizes.of[1] == class->sizes[i].of[1])
            return false;
    return true;
}

void eddy_shape_class_check(eddy_shape_class *class, eddy_sizes sizes, bool is_as_foretold) {
    eddy_shape_bucket *bucket = eddy_shape_class_bucket(class, sizes);
    if (bucket) {
        bucket->is_checked |= is_as_foretold;
        bucket->is_given_up |= !is_as_foretold;
    }
    if (is_as_foretold) {
        class->is_checked |= checks(class, sizes);
        widen(class, sizes);
    } else if (!class->is_checked || is_between(class, sizes)) {
        class->is_given_up = true;
    }
}

void eddy_shape_class_note_untold(eddy_shape_class *class, eddy_sizes sizes) {
    for (int32_t s = 0; s < class->at.count; s++)
        if (sizes.of[s] < EDDY_SIZE_LEAST)
            return;
    class->untold = sizes;
}

eddy_status eddy_shape_class_foretell(const eddy_shape_class *class, eddy_sizes sizes,
                                      eddy_program **program) {
    eddy_affine affine;
    return eddy_affine_of(class->sizes, class->at.count, sizes, &affine)
               ? eddy_program_foretell((const eddy_program *const *)class->programs, &affine,
                                       program)
               : EDDY_INVALID_ARGUMENT;
}
