/* What recorded functions say of themselves. */
#include <base/status.h>
#include <interpreter/call/describe.h>
#include <program/recorded_function.h>
#include <stdio.h>

/* So many signatures have a line of their own. */
#define EXPLAINED_MOST 100

/* A program that is there already, or a reason against one, is not changed by a call that failed. */
static const char *outcome_text(const eddy_signature *at) {
    if (at->is_replayed || at->is_given_up || at->outcome == EDDY_SIGNATURE_RECORDED)
        return "";
    return at->outcome == EDDY_SIGNATURE_FAILED
               ? "; the last call failed: it was not recorded"
               : "; the last call went on after a failed op: it was not recorded";
}

/* "; it reads input1, input2: each value has a program" */
static void describe_guards(const eddy_signature *at, char *text, size_t size) {
    const eddy_guard *guards = at->guards.items;
    eddy_text all = {text, size, 0};
    text[0] = 0;
    for (uint32_t i = 0; i < at->guards.count; i++) {
        char source[64];
        eddy_guard_describe_source(&guards[i], source, sizeof(source));
        eddy_text_add(&all, "%s%s", i == 0 ? "; it reads " : ", ", source);
    }
    eddy_text_end(&all);
}

/* first: of all signatures, from which it is told apart. */
static int explain_one(const eddy_signature *at, const eddy_signature *first, char *buffer,
                       size_t size) {
    const char *state = !at->reason[0] ? "" : at->is_given_up ? "; not replayed: " : "; not yet: ";
    char missed[160] = "", guards[200], apart[300];
    if (at->missed > 0)
        snprintf(missed, sizeof(missed), "; missed %llu times%s%s%s",
                 (unsigned long long)at->missed, at->miss ? " (" : "", at->miss ? at->miss : "",
                 at->miss ? ")" : "");
    describe_guards(at, guards, sizeof(guards));
    eddy_signature_tell_apart(at, first, apart, sizeof(apart));
    return snprintf(buffer, size, "(%s%s): ran %llu times, replayed %llu times%s%s%s%s%s%s%s\n",
                    at->text, apart, (unsigned long long)at->ran, (unsigned long long)at->replayed,
                    at->is_foretold ? "; as programs of other sizes foretell" : "", missed, guards,
                    at->guards.count > 0 ? ": each value has a program" : "", outcome_text(at),
                    state, at->reason);
}

/* ---- buckets ---- */

static int64_t count_kept(const eddy_recorded *recorded, const eddy_shape_bucket *bucket) {
    int64_t count = 0;
    for (const eddy_signature *at = recorded->first; at; at = at->next)
        count += at->bucket == bucket;
    return count;
}

/* "; sizes 5 to 60: 56 programs derived, 20 kept, replayed 112 times; each run takes 12288 bytes" */
static void describe_derived(const eddy_recorded *recorded, const eddy_shape_bucket *bucket,
                             char *text, size_t size) {
    char arena[64] = "";
    if (bucket->lowered[0])
        snprintf(arena, sizeof(arena), "; arena %lld bytes",
                 (long long)bucket->lowered[0]->layout->plan.bytes);
    snprintf(text, size, "sizes %lld to %lld, %llu derived, %llu kept, replayed %llu times%s",
             (long long)bucket->seen_least, (long long)bucket->seen_most,
             (unsigned long long)bucket->derived, (unsigned long long)count_kept(recorded, bucket),
             (unsigned long long)bucket->replayed, arena);
}

static int explain_bucket(const eddy_recorded *recorded, const eddy_shape_class *class,
                          const eddy_shape_bucket *bucket, char *buffer, size_t size) {
    char inputs[320], derived[256] = "none followed so far", exact[320] = "";
    eddy_signature_key_describe(class->keys[0], class->keys[1], inputs, sizeof(inputs));
    if (bucket->seen_least > 0)
        describe_derived(recorded, bucket, derived, sizeof(derived));
    if (bucket->exact > 0)
        snprintf(exact, sizeof(exact), "; %llu built in full: %s",
                 (unsigned long long)bucket->exact, bucket->reason);
    return snprintf(buffer, size, "(%s), n from %lld to %lld: %s%s%s\n", inputs,
                    (long long)bucket->least, (long long)bucket->most, derived, exact,
                    class->is_given_up || bucket->is_given_up
                        ? "; a recording was not as foretold: its sizes are recorded"
                        : "");
}

static int explain_beyond(const eddy_shape_class *class, int64_t most, char *buffer, size_t size) {
    char inputs[320];
    eddy_signature_key_describe(class->keys[0], class->keys[1], inputs, sizeof(inputs));
    return snprintf(buffer, size,
                    "(%s), n above %lld: ran %llu times; not replayed: it is the "
                    "largest size\n",
                    inputs, (long long)most, (unsigned long long)class->beyond);
}

/* ---- all of it ---- */

typedef struct text {
    char *buffer;
    size_t size;
    int length;
} text;

static char *end_of(const text *t, size_t *room) {
    size_t used = (size_t)t->length < t->size ? (size_t)t->length : t->size;
    *room = t->size - used;
    return t->buffer + used;
}

static void explain_class(const eddy_recorded *recorded, const eddy_shape_class *class, text *t) {
    size_t room;
    for (int64_t i = 0; i < class->bucket_count; i++) {
        char *end = end_of(t, &room);
        t->length += explain_bucket(recorded, class, &class->buckets[i], end, room);
    }
    if (class->beyond > 0) {
        char *end = end_of(t, &room);
        t->length += explain_beyond(class, recorded->edges[recorded->edge_count - 1], end, room);
    }
}

/* Sizes of buckets have no line of their own. */
static int explain_locked(const eddy_recorded *recorded, char *buffer, size_t size) {
    text t = {buffer, size, 0};
    size_t room;
    int count = 0;
    for (const eddy_signature *at = recorded->first; at; at = at->next)
        if (!at->bucket && count++ < EXPLAINED_MOST) {
            char *end = end_of(&t, &room);
            t.length += explain_one(at, recorded->first, end, room);
        }
    if (count > EXPLAINED_MOST) {
        char *end = end_of(&t, &room);
        t.length +=
            snprintf(end, room, "and %d more, used less recently\n", count - EXPLAINED_MOST);
    }
    for (const eddy_shape_class *class = recorded->classes; class; class = class->next)
        explain_class(recorded, class, &t);
    return t.length;
}

int eddy_recorded_explain(eddy_recorded *recorded, char *buffer, size_t size) {
    if (!recorded || (size > 0 && !buffer)) {
        eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("recorded_explain"),
                  recorded ? "there is no room for the text" : "the recorded function is NULL");
        return -1;
    }
    if (size > 0)
        buffer[0] = 0;
    eddy_lock_acquire(&recorded->lock);
    int length = explain_locked(recorded, buffer, size);
    eddy_lock_release(&recorded->lock);
    return length;
}
