/* The signatures that a recorded function has, and how many there is room for. */
#include <program/recorded_function.h>
#include <string.h>

eddy_signature *eddy_recorded_find_signature(eddy_recorded *recorded, const void *key,
                                             size_t key_bytes) {
    eddy_digest digest = eddy_hash_128(key, key_bytes);
    for (eddy_signature **place = &recorded->first; *place; place = &(*place)->next) {
        eddy_signature *signature = *place;
        if (signature->digest.low != digest.low || signature->digest.high != digest.high ||
            signature->key_bytes != key_bytes || memcmp(signature->key, key, key_bytes) != 0)
            continue;
        *place = signature->next;
        signature->next = recorded->first;
        recorded->first = signature;
        return signature;
    }
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
    bytes += signature->program ? eddy_program_bytes(signature->program) : 0;
    return bytes + (signature->source ? eddy_program_bytes(signature->source) : 0);
}

void eddy_recorded_trim(eddy_recorded *recorded, eddy_recorded_dropped *dropped) {
    eddy_signature *at = recorded->first;
    if (!at)
        return;
    int64_t bytes = bytes_of(at);
    dropped->classes = eddy_recorded_trim_classes(recorded, &bytes);
    for (; at->next; at = at->next) {
        bytes += bytes_of(at->next);
        if (bytes > recorded->most_bytes) {
            dropped->signatures = at->next;
            at->next = NULL;
            return;
        }
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
