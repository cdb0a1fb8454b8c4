/* What recorded functions say of themselves. */
#include <base/status.h>
#include <interpreter/call/describe.h>
#include <program/recorded_function.h>

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
static void explain_one(const eddy_signature *at, const eddy_signature *first, eddy_text *text) {
    char guards[200], apart[300];
    describe_guards(at, guards, sizeof(guards));
    eddy_signature_tell_apart(at, first, apart, sizeof(apart));
    eddy_text_add(text, "(%s%s): ran %llu times, replayed %llu times", at->text, apart,
                  (unsigned long long)at->ran, (unsigned long long)at->replayed);
    if (at->is_foretold)
        eddy_text_add(text, "; as programs of other sizes foretell");
    if (at->missed > 0)
        eddy_text_add(text, "; missed %llu times", (unsigned long long)at->missed);
    if (at->missed > 0 && at->miss)
        eddy_text_add(text, " (%s)", at->miss);
    if (at->forks[0] && !at->is_given_up)
        eddy_text_add(text, "; %s: each value has a program", at->forks);
    eddy_text_add(text, "%s%s%s", guards, at->guards.count > 0 ? ": each value has a program" : "",
                  outcome_text(at));
    if (at->reason[0])
        eddy_text_add(text, "; %s: %s", at->is_given_up ? "not replayed" : "not yet", at->reason);
    eddy_text_add(text, "\n");
}

/* ---- buckets ---- */

static uint64_t count_kept(const eddy_recorded *recorded, const eddy_shape_bucket *bucket) {
    uint64_t count = 0;
    for (const eddy_signature *at = recorded->first; at; at = at->next)
        count += at->bucket == bucket;
    return count;
}

static void explain_derived(const eddy_recorded *recorded, const eddy_shape_bucket *bucket,
                            eddy_text *text) {
    eddy_text_add(text, "sizes %lld to %lld, %llu derived, %llu kept, replayed %llu times",
                  (long long)bucket->seen_least, (long long)bucket->seen_most,
                  (unsigned long long)bucket->derived,
                  (unsigned long long)count_kept(recorded, bucket),
                  (unsigned long long)bucket->replayed);
    if (bucket->lowered[0])
        eddy_text_add(text, "; arena %lld bytes",
                      (long long)bucket->lowered[0]->layout->plan.bytes);
}

static void explain_bucket(const eddy_recorded *recorded, const eddy_shape_class *class,
                           const eddy_shape_bucket *bucket, const char *inputs, eddy_text *text) {
    eddy_text_add(text, "(%s), n from %lld to %lld: ", inputs, (long long)bucket->least,
                  (long long)bucket->most);
    if (bucket->seen_least > 0)
        explain_derived(recorded, bucket, text);
    else
        eddy_text_add(text, "none followed so far");
    if (bucket->exact > 0)
        eddy_text_add(text, "; %llu built in full: %s", (unsigned long long)bucket->exact,
                      bucket->reason);
    if (class->is_given_up || bucket->is_given_up)
        eddy_text_add(text, "; a recording was not as foretold: its sizes are recorded");
    eddy_text_add(text, "\n");
}

/* "3", "3 x 4" */
static void add_sizes(eddy_text *text, const eddy_shape_class *class, eddy_sizes sizes) {
    for (int32_t s = 0; s < class->at.count; s++)
        eddy_text_add(text, "%s%lld", s > 0 ? " x " : "", (long long)sizes.of[s]);
}

static void explain_untold(const eddy_shape_class *class, const char *inputs, eddy_text *text) {
    eddy_text_add(text, "(%s): of %s = ", inputs, class->at.count == 1 ? "n" : "m x n");
    add_sizes(text, class, class->untold);
    eddy_text_add(text, " the programs of ");
    for (int32_t i = 0; i < class->known_count; i++) {
        eddy_text_add(text, "%s", i == 0 ? "" : i + 1 < class->known_count ? ", " : " and ");
        add_sizes(text, class, class->sizes[i]);
    }
    eddy_text_add(text, " foretell nothing: they differ in more than sizes, or a number would not "
                        "be whole\n");
}

static void explain_class(const eddy_recorded *recorded, const eddy_shape_class *class,
                          eddy_text *text) {
    char inputs[320];
    eddy_signature_key_describe((const void *const *)class->keys, &class->at, inputs,
                                sizeof(inputs));
    for (int64_t i = 0; i < class->bucket_count; i++)
        explain_bucket(recorded, class, &class->buckets[i], inputs, text);
    if (class->untold.of[0] > 0)
        explain_untold(class, inputs, text);
    if (class->beyond > 0)
        eddy_text_add(text,
                      "(%s), n above %lld: ran %llu times; not replayed: it is the largest size\n",
                      inputs, (long long)recorded->edges[recorded->edge_count - 1],
                      (unsigned long long)class->beyond);
}

/* ---- all of it ---- */

/* Sizes of buckets have no line of their own. */
static void explain_locked(const eddy_recorded *recorded, eddy_text *text) {
    int count = 0;
    for (const eddy_signature *at = recorded->first; at; at = at->next)
        if (!at->bucket && count++ < EXPLAINED_MOST)
            explain_one(at, recorded->first, text);
    if (count > EXPLAINED_MOST)
        eddy_text_add(text, "and %d more, used less recently\n", count - EXPLAINED_MOST);
    for (const eddy_shape_class *class = recorded->classes; class; class = class->next)
        explain_class(recorded, class, text);
}

int eddy_recorded_explain(eddy_recorded *recorded, char *buffer, size_t size) {
    if (!recorded || (size > 0 && !buffer)) {
        eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("recorded_explain"),
                  recorded ? "there is no room for the text" : "the recorded function is NULL");
        return -1;
    }
    if (size > 0)
        buffer[0] = 0;
    eddy_text text = {buffer, size, 0};
    eddy_lock_acquire(&recorded->lock);
    explain_locked(recorded, &text);
    eddy_lock_release(&recorded->lock);
    return (int)text.length;
}
