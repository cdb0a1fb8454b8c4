#include <program/shape_class.h>

#include <base/memory.h>
#include <base/number.h>
#include <string.h>

/* ---- life ---- */

static bool copy_keys(eddy_shape_class *class, const eddy_signature *const *of) {
    for (int i = 0; i < 2; i++) {
        class->keys[i] = eddy_memory_acquire(class->key_bytes, EDDY_MEMORY_PROGRAM);
        if (!class->keys[i])
            return false;
        memcpy(class->keys[i], of[i]->key, class->key_bytes);
    }
    return true;
}

/* An input that was elsewhere at another size is no tensor of the function's own. */
static bool copy_inputs(eddy_shape_class *class, const eddy_signature *const *of) {
    size_t bytes = (size_t) class->input_count * sizeof(*class->inputs);
    class->inputs = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    for (int64_t i = 0; class->inputs && i < class->input_count; i++) {
        const eddy_signature_input *a = &of[0]->inputs[i], *b = &of[1]->inputs[i];
        class->inputs[i] = *a;
        class->inputs[i].is_fixed = a->is_fixed && b->is_fixed && a->storage == b->storage &&
                                    a->generation == b->generation && a->offset == b->offset;
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
    for (int i = 0; i < 2; i++) {
        eddy_shape_bucket *bucket = eddy_shape_class_bucket(class, class->sizes[i]);
        if (bucket)
            bucket->is_checked = true;
    }
    return true;
}

eddy_shape_class *eddy_shape_class_create(const eddy_signature *first, const eddy_signature *second,
                                          const int64_t *edges, int64_t edge_count) {
    const eddy_signature *const of[] = {first, second};
    eddy_affine affine;
    if (first->key_bytes != second->key_bytes ||
        !eddy_signature_key_is_foretold(first->key, second->key, second->key, first->key_bytes,
                                        &affine))
        return NULL;
    int64_t *sizes = affine.sizes;
    eddy_shape_class *class = eddy_memory_acquire_zeroed(sizeof(*class), EDDY_MEMORY_PROGRAM);
    if (!class)
        return NULL;
    *class =
        (eddy_shape_class){.key_bytes = first->key_bytes,
                           .sizes = {sizes[0], sizes[1]},
                           .input_count = first->input_count,
                           .tape_changes = second->tape_changes,
                           .step = sizes[0] < sizes[1] ? sizes[1] - sizes[0] : sizes[0] - sizes[1],
                           .least = sizes[0] < sizes[1] ? sizes[0] : sizes[1],
                           .most = sizes[0] < sizes[1] ? sizes[1] : sizes[0]};
    eddy_store_relaxed(&class->references, 1u);
    for (int i = 0; i < 2; i++)
        class->programs[i] = eddy_program_retain(of[i]->source);
    if (copy_keys(class, of) && copy_inputs(class, of) && make_buckets(class, edges, edge_count))
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
    for (int i = 0; i < 2; i++) {
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
    int64_t bytes = (int64_t)(sizeof(*class) + 2 * class->key_bytes +
                              (size_t) class->input_count * sizeof(*class->inputs)) +
                    eddy_program_bytes(class->programs[0]) + eddy_program_bytes(class->programs[1]);
    for (int64_t i = 0; i < class->bucket_count; i++)
        bytes += eddy_shape_bucket_bytes(&class->buckets[i]);
    return bytes;
}

/* ---- sizes ---- */

bool eddy_shape_class_has(const eddy_shape_class *class, const void *key, size_t key_bytes,
                          int64_t *size) {
    eddy_affine affine;
    if (key_bytes != class->key_bytes ||
        !eddy_signature_key_is_foretold(class->keys[0], class->keys[1], key, key_bytes, &affine))
        return false;
    *size = affine.size;
    return true;
}

eddy_shape_bucket *eddy_shape_class_bucket(const eddy_shape_class *class, int64_t size) {
    for (int64_t i = 0; i < class->bucket_count; i++)
        if (size >= class->buckets[i].least && size <= class->buckets[i].most)
            return &class->buckets[i];
    return NULL;
}

bool eddy_shape_class_knows(const eddy_shape_class *class, int64_t size) {
    const eddy_shape_bucket *bucket = eddy_shape_class_bucket(class, size);
    bool is_within = bucket ? bucket->is_checked && !bucket->is_given_up
                            : size >= class->least && size <= class->most;
    return class->is_checked && !class->is_given_up && is_within &&
           (size - class->least) % class->step == 0;
}

void eddy_shape_class_check(eddy_shape_class *class, int64_t size, bool is_as_foretold) {
    eddy_shape_bucket *bucket = eddy_shape_class_bucket(class, size);
    bool is_between = size >= class->least && size <= class->most;
    if (bucket) {
        bucket->is_checked |= is_as_foretold;
        bucket->is_given_up |= !is_as_foretold;
    }
    if (is_as_foretold) {
        class->is_checked = true;
        class->step = eddy_gcd_i64(class->step,
                                   size > class->least ? size - class->least : class->least - size);
        class->least = size < class->least ? size : class->least;
        class->most = size > class->most ? size : class->most;
    } else if (!class->is_checked || is_between) {
        class->is_given_up = true;
    }
}

eddy_status eddy_shape_class_foretell(const eddy_shape_class *class, int64_t size,
                                      eddy_program **program) {
    eddy_affine affine = {{class->sizes[0], class->sizes[1]}, size};
    return eddy_program_foretell(class->programs[0], class->programs[1], &affine, program);
}
