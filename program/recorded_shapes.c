/* The classes of shapes that a recorded function has. */
#include <program/recorded_function.h>

static eddy_shape_class **find(eddy_recorded *recorded, const void *key, size_t key_bytes,
                               int64_t *size) {
    eddy_shape_class **place = &recorded->classes;
    while (*place && !eddy_shape_class_has(*place, key, key_bytes, size))
        place = &(*place)->next;
    return place;
}

eddy_shape_class *eddy_recorded_find_class(eddy_recorded *recorded, const void *key,
                                           size_t key_bytes, int64_t *size) {
    return *find(recorded, key, key_bytes, size);
}

eddy_shape_class *eddy_recorded_take_stale_class(eddy_recorded *recorded, const void *key,
                                                 size_t key_bytes) {
    int64_t size;
    eddy_shape_class **place = find(recorded, key, key_bytes, &size), *found = *place;
    if (!found || eddy_signature_fits_tape(found->programs[1], found->tape_changes))
        return NULL;
    *place = found->next;
    return found;
}

bool eddy_recorded_is_beyond(eddy_recorded *recorded, const void *key, size_t key_bytes,
                             int64_t *size) {
    if (recorded->edge_count == 0)
        return false;
    eddy_shape_class *class = *find(recorded, key, key_bytes, size);
    bool is_beyond =
        class && !class->is_given_up && *size > recorded->edges[recorded->edge_count - 1];
    if (is_beyond)
        class->beyond++;
    return is_beyond;
}

/* A signature with which it makes a class. */
static eddy_shape_class *try_all(eddy_recorded *recorded, eddy_signature *signature) {
    for (eddy_signature *other = recorded->first; other; other = other->next) {
        if (other == signature || !other->source ||
            !eddy_signature_fits_tape(other->source, other->tape_changes))
            continue;
        eddy_shape_class *class =
            eddy_shape_class_create(other, signature, recorded->edges, recorded->edge_count);
        if (!class)
            continue;
        eddy_program_release(&other->source); /* the class has a reference */
        eddy_program_release(&signature->source);
        return class;
    }
    return NULL;
}

void eddy_recorded_learn_class(eddy_recorded *recorded, eddy_signature *signature) {
    int64_t size;
    if (*find(recorded, signature->key, signature->key_bytes, &size))
        return;
    eddy_shape_class *class = try_all(recorded, signature);
    if (!class)
        return;
    class->next = recorded->classes;
    recorded->classes = class;
}

eddy_shape_class *eddy_recorded_trim_classes(eddy_recorded *recorded, int64_t *bytes) {
    eddy_shape_class **place = &recorded->classes;
    for (int count = 0; *place && count < EDDY_SHAPE_CLASSES_MOST; count++) {
        int64_t with = *bytes + eddy_shape_class_bytes(*place);
        if (count > 0 && with > recorded->most_bytes)
            break;
        *bytes = with;
        place = &(*place)->next;
    }
    eddy_shape_class *dropped = *place;
    *place = NULL;
    return dropped;
}
