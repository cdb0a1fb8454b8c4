/* The classes of shapes that a recorded function has. */
#include <program/recorded_function.h>

/* So many points are looked at for a class of two sizes: it takes four, and there are more threes of them than pairs. */
#define POINTS_MOST 12

/* ---- of a call ---- */

eddy_shape_class *eddy_recorded_find_class(eddy_recorded *recorded, const void *key,
                                           size_t key_bytes, eddy_list inputs, bool is_known,
                                           eddy_sizes *sizes) {
    for (eddy_shape_class *class = recorded->classes; class; class = class->next)
        if (!class->is_given_up && eddy_shape_class_has(class, key, key_bytes, sizes) &&
            (!is_known || eddy_shape_class_knows(class, *sizes)) &&
            eddy_signature_has_inputs(class->inputs, inputs))
            return class;
    return NULL;
}

eddy_shape_class *eddy_recorded_take_stale_classes(eddy_recorded *recorded, const void *key,
                                                   size_t key_bytes) {
    eddy_sizes sizes;
    eddy_shape_class *taken = NULL;
    for (eddy_shape_class **place = &recorded->classes; *place;) {
        eddy_shape_class *class = *place;
        if (!eddy_shape_class_has(class, key, key_bytes, &sizes) ||
            eddy_shape_class_fits_tape(class)) {
            place = &class->next;
            continue;
        }
        *place = class->next;
        class->next = taken;
        taken = class;
    }
    return taken;
}

bool eddy_recorded_is_beyond(eddy_recorded *recorded, const void *key, size_t key_bytes,
                             int64_t *size) {
    eddy_sizes sizes;
    if (recorded->edge_count == 0)
        return false;
    for (eddy_shape_class *class = recorded->classes; class; class = class->next) {
        if (class->is_given_up || class->at.count > 1 ||
            !eddy_shape_class_has(class, key, key_bytes, &sizes) ||
            sizes.of[0] <= recorded->edges[recorded->edge_count - 1])
            continue;
        class->beyond++;
        *size = sizes.of[0];
        return true;
    }
    return false;
}

/* ---- learning ---- */

/* Of which a class may be learnt. The first one is the newest. */
typedef struct points {
    eddy_shape_point items[POINTS_MOST];
    eddy_signature *of[POINTS_MOST]; /* whose source it is; NULL: a class has it */
    int32_t count;
} points;

/* Of the newest one's kind alone. */
static void add(points *all, eddy_shape_point point, eddy_signature *of) {
    const eddy_shape_point *newest = &all->items[0];
    bool is_like =
        all->count == 0 || (point.key_bytes == newest->key_bytes &&
                            eddy_signature_key_is_like(point.key, newest->key, point.key_bytes));
    if (!is_like || all->count == POINTS_MOST)
        return;
    all->of[all->count] = of;
    all->items[all->count++] = point;
}

static void add_signature(points *all, eddy_signature *signature) {
    add(all,
        (eddy_shape_point){.key = signature->key,
                           .key_bytes = signature->key_bytes,
                           .program = signature->source,
                           .inputs = signature->inputs,
                           .input_count = signature->input_count},
        signature);
}

static void add_class(points *all, const eddy_shape_class *class) {
    for (int32_t i = 0; i < class->known_count; i++)
        add(all,
            (eddy_shape_point){.key = class->keys[i],
                               .key_bytes = class->key_bytes,
                               .program = class->programs[i],
                               .inputs = class->inputs,
                               .input_count = class->input_count},
            NULL);
}

/* with_classes: what classes of one size were learnt from, too. */
static void find_points(eddy_recorded *recorded, eddy_signature *newest, bool with_classes,
                        points *all) {
    *all = (points){0};
    add_signature(all, newest);
    for (eddy_signature *other = recorded->first; other; other = other->next)
        if (other != newest && other->source &&
            eddy_signature_fits_tape(other->source, other->tape_changes))
            add_signature(all, other);
    for (eddy_shape_class *class = recorded->classes; with_classes && class; class = class->next)
        if (class->at.count == 1 && eddy_shape_class_fits_tape(class))
            add_class(all, class);
}

/* Of these points, of which the newest comes last. The class has a reference of their programs then. */
static bool learn(eddy_recorded *recorded, points *all, const int32_t *which, int32_t count) {
    eddy_shape_point chosen[EDDY_KNOWN_MOST] = {{0}};
    for (int32_t i = 0; i < count; i++)
        chosen[i] = all->items[which[i]];
    eddy_shape_class *class = eddy_shape_class_create(chosen, count, all->of[0]->tape_changes,
                                                      recorded->edges, recorded->edge_count);
    if (!class)
        return false;
    for (int32_t i = 0; i < count; i++)
        if (all->of[which[i]])
            eddy_program_release(&all->of[which[i]]->source);
    class->next = recorded->classes;
    recorded->classes = class;
    return true;
}

static bool learn_of_one_size(eddy_recorded *recorded, eddy_signature *signature) {
    points all;
    bool is_learnt = false;
    find_points(recorded, signature, false, &all);
    for (int32_t i = 1; i < all.count && !is_learnt; i++)
        is_learnt = learn(recorded, &all, (const int32_t[]){i, 0}, 2);
    return is_learnt;
}

static bool learn_of_two_sizes(eddy_recorded *recorded, eddy_signature *signature) {
    points all;
    bool is_learnt = false;
    find_points(recorded, signature, true, &all);
    for (int32_t i = 1; i < all.count; i++)
        for (int32_t j = i + 1; j < all.count; j++)
            for (int32_t k = j + 1; k < all.count && !is_learnt; k++)
                is_learnt = learn(recorded, &all, (const int32_t[]){i, j, k, 0}, 4);
    return is_learnt;
}

/* Whether a class of so many sizes has the key. */
static bool has_class(const eddy_recorded *recorded, const eddy_signature *signature, int32_t count,
                      bool is_given_up) {
    eddy_sizes sizes;
    for (const eddy_shape_class *class = recorded->classes; class; class = class->next)
        if (class->at.count == count && (is_given_up || !class->is_given_up) &&
            eddy_shape_class_has(class, signature->key, signature->key_bytes, &sizes))
            return true;
    return false;
}

void eddy_recorded_learn_class(eddy_recorded *recorded, eddy_signature *signature) {
    if (has_class(recorded, signature, 1, true) || has_class(recorded, signature, 2, false))
        return;
    if (!has_class(recorded, signature, 2, true) && learn_of_two_sizes(recorded, signature))
        return;
    (void)learn_of_one_size(recorded, signature);
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
