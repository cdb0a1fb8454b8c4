/* The signatures that a recorded function has, and how many there is room for. */
#include <program/recorded_function.h>
#include <string.h>

eddy_signature *eddy_recorded_find_signature(eddy_recorded *recorded, const void *key,
                                             size_t key_bytes, uint32_t path_bytes) {
    eddy_digest digest = eddy_hash_128(key, key_bytes);
    for (eddy_signature **place = &recorded->first; *place; place = &(*place)->next) {
        eddy_signature *signature = *place;
        if (signature->digest.low != digest.low || signature->digest.high != digest.high ||
            signature->key_bytes != key_bytes || signature->path_bytes != path_bytes ||
            memcmp(signature->key, key, key_bytes) != 0)
            continue;
        *place = signature->next;
        signature->next = recorded->first;
        recorded->first = signature;
        return signature;
    }
    return NULL;
}

static bool is_path_of(const eddy_signature *signature, const void *key, size_t key_bytes,
                       const void *known, uint32_t known_bytes) {
    return signature->path_bytes > 0 && signature->path_bytes >= known_bytes &&
           signature->key_bytes == key_bytes + signature->path_bytes &&
           memcmp(signature->key, key, key_bytes) == 0 &&
           memcmp((const char *)signature->key + key_bytes, known, known_bytes) == 0;
}

eddy_signature *eddy_recorded_find_path(eddy_signature *first, const void *key, size_t key_bytes,
                                        const void *known, uint32_t known_bytes, bool is_given_up) {
    for (eddy_signature *at = first; at; at = at->next)
        if ((is_given_up ? at->is_given_up : at->is_replayed) &&
            is_path_of(at, key, key_bytes, known, known_bytes))
            return at;
    return NULL;
}

eddy_signature *eddy_recorded_add_signature(eddy_recorded *recorded, const void *key,
                                            size_t key_bytes, eddy_list inputs, const char *with) {
    eddy_signature *signature = eddy_signature_create(key, key_bytes, inputs, with);
    if (!signature)
        return NULL;
    signature->next = recorded->first;
    recorded->first = signature;
    return signature;
}

/* ---- what there is room for ---- */

static int64_t bytes_of(const eddy_signature *signature) {
    int64_t bytes = (int64_t)(sizeof(*signature) + signature->key_bytes);
    if (signature->bucket)
        return bytes + signature->program_bytes;
    bytes += signature->program ? eddy_program_bytes(signature->program) : 0;
    return bytes + (signature->source ? eddy_program_bytes(signature->source) : 0);
}

/* Those that were used least recently. */
static void trim_oldest(eddy_recorded *recorded, int64_t bytes, eddy_recorded_dropped *dropped) {
    eddy_signature *at = recorded->first;
    /* A path is nothing without what tells that there are paths. */
    if (at->path_bytes > 0 && at->next && at->next->forks[0])
        at = at->next;
    for (; at->next; at = at->next) {
        bytes += bytes_of(at->next);
        if (bytes > recorded->most_bytes) {
            dropped->signatures = at->next;
            at->next = NULL;
            return;
        }
    }
}

/* The one of a bucket behind the first that is worth the least; of those worth the same, the one used least recently. */
static eddy_signature **find_least_worth(eddy_recorded *recorded) {
    eddy_signature **least = NULL;
    for (eddy_signature **place = &recorded->first->next; *place; place = &(*place)->next)
        if ((*place)->bucket && (!least || (*place)->worth <= (*least)->worth))
            least = place;
    return least;
}

static void trim_derived(eddy_recorded *recorded, eddy_recorded_dropped *dropped) {
    int64_t bytes = 0;
    eddy_signature **place;
    for (const eddy_signature *at = recorded->first; at; at = at->next)
        bytes += at->bucket ? bytes_of(at) : 0;
    while (bytes > recorded->most_derived_bytes && (place = find_least_worth(recorded))) {
        eddy_signature *least = *place;
        bytes -= bytes_of(least);
        recorded->age = least->worth;
        *place = least->next;
        least->next = dropped->signatures;
        dropped->signatures = least;
    }
}

void eddy_recorded_trim(eddy_recorded *recorded, eddy_recorded_dropped *dropped) {
    if (!recorded->first)
        return;
    int64_t bytes = bytes_of(recorded->first);
    dropped->classes = eddy_recorded_trim_classes(recorded, &bytes);
    trim_oldest(recorded, bytes, dropped);
    trim_derived(recorded, dropped);
}

/* Least frequently used with dynamic ageing (Arlitt et al., "Evaluating content management techniques for Web proxy caches", 1999): what was of much use long ago
 * does not stay for ever. */
void eddy_recorded_note_replay(eddy_recorded *recorded, eddy_signature *signature) {
    signature->replayed++;
    if (!signature->bucket)
        return;
    signature->worth = recorded->age + signature->replayed;
    signature->bucket->replayed++;
}

/* Another thread may have dropped the signature that was noted, and this one is new. */
void eddy_recorded_note_miss(eddy_signature *signature, const char *why) {
    signature->replayed -= signature->replayed > 0;
    if (signature->bucket)
        signature->bucket->replayed -= signature->bucket->replayed > 0;
    signature->ran++;
    signature->missed++;
    signature->miss = why;
}

/* A value's key is that of its kind, and what the guards have read. */
static bool is_value(const eddy_signature *signature, const void *key, size_t kind_bytes) {
    return signature->key_bytes > kind_bytes && memcmp(signature->key, key, kind_bytes) == 0;
}

void eddy_recorded_trim_values(eddy_recorded *recorded, const void *key, size_t kind_bytes,
                               uint32_t most, eddy_recorded_dropped *dropped) {
    uint32_t count = 0;
    for (eddy_signature **place = &recorded->first; *place;) {
        eddy_signature *at = *place;
        if (!is_value(at, key, kind_bytes) || ++count <= most) {
            place = &at->next;
            continue;
        }
        *place = at->next;
        at->next = dropped->signatures;
        dropped->signatures = at;
    }
}

void eddy_recorded_drop(eddy_recorded_dropped *dropped) {
    while (dropped->signatures) {
        eddy_signature *next = dropped->signatures->next;
        eddy_signature_destroy(dropped->signatures);
        dropped->signatures = next;
    }
    while (dropped->classes) {
        eddy_shape_class *next = dropped->classes->next;
        eddy_shape_class_release(dropped->classes);
        dropped->classes = next;
    }
}
