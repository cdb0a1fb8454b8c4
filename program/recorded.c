/* Recorded functions: two recordings for each signature, then replay. No lock is held while the function or a program runs. */
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/tape/autograd.h>
#include <program/front.h>
#include <program/host_read.h>
#include <program/quiet.h>
#include <program/recorded_call.h>
#include <stdio.h>
#include <string.h>

/* So many recordings of a signature may differ from the one before; then the function just runs. */
#define DIFFERENCES_MOST 8
/* New values of what a function reads, or paths, that are recorded, before one of those that were is replayed; and at most, then: so many are kept, too. */
#define VALUES_FIRST 8
#define VALUES_MOST 64
/* So many paths are tried by one call: each has what the one before has read. */
#define TRIES_MOST 16
/* A call that fits no path has computed its beginning in vain. So many may in a row; a replay earns another one. Then the function just runs, but for each 16th call, which tries a path again. */
#define TRUST_FIRST 8
#define TRUST_MOST 64
#define UNTRIED_MOST 15
/* Bytes that a run may keep to put them back. */
#define KEPT_BYTES_MOST (4 << 20)

/* ---- signatures ---- */

/* That of the call, which becomes the first; NULL if there is none. */
static eddy_signature *find_locked(const eddy_calling *c) {
    return eddy_recorded_find_signature(c->recorded, c->key, c->key_bytes, c->path_bytes);
}

/* That of which the call's is one of many: of the kinds of its arguments, which has the guards, or that which has its paths. NULL where nothing is read. */
static eddy_signature *find_kind_locked(const eddy_calling *c) {
    if (c->path_bytes > 0)
        return eddy_recorded_find_signature(c->recorded, c->key, c->key_bytes - c->path_bytes, 0);
    return c->guards.count > 0 ? eddy_recorded_find_signature(c->recorded, c->key, c->kind_bytes, 0)
                               : NULL;
}

/* A replay of one of its values, or paths, has earned another one. */
static void earn_value(eddy_signature *of) {
    if (of)
        of->values_left += of->values_left < VALUES_MOST;
}

/* There is a reason against the newest recording. What another thread did says little of the next one: recording begins anew. */
static eddy_program *refuse_locked(eddy_signature *signature, const char *reason,
                                   bool is_disturbed) {
    eddy_program *before = is_disturbed ? signature->program : NULL;
    if (is_disturbed)
        signature->program = NULL;
    signature->is_given_up = !is_disturbed || ++signature->differed >= DIFFERENCES_MOST;
    snprintf(signature->reason, sizeof(signature->reason), "%s", reason);
    return before;
}

/* What a recording has come to. */
typedef struct verdict {
    eddy_program *program; /* a reference; NULL where there is a reason */
    eddy_program *before;  /* a reference: of the recording that it was compared with, or NULL */
    bool is_built;         /* it was equal */
    char difference[EDDY_RECORDING_REASON_BYTES]; /* or why it was not */
    char reason[EDDY_RECORDING_REASON_BYTES];     /* why there is no program */
    bool is_disturbed;                            /* by another thread: that is the reason */
    eddy_shape_class *class; /* a reference: the one that foretells the recording, or NULL */
    eddy_sizes sizes;
    bool is_as_foretold;
    eddy_program *stale; /* a reference that the signature has given up, or NULL */
} verdict;

static void note_changes(eddy_signature *signature) {
    signature->tape_changes = eddy_autograd_changes();
}

/* The signature's program is one that the class foretells. */
static void set_foretold(const eddy_calling *c, eddy_signature *signature,
                         const eddy_shape_class *class) {
    eddy_signature_note(signature, c->inputs, false);
    for (int64_t i = 0; i < signature->input_count; i++)
        if (class->inputs[i].is_fixed)
            signature->inputs[i] = class->inputs[i];
    note_changes(signature);
    signature->is_replayed = signature->is_foretold = true;
    signature->differed = 0;
    signature->reason[0] = 0;
}

/* lock: the function's. What is left in the verdict is to be released. */
static void settle_locked(const eddy_calling *c, eddy_signature *signature, verdict *v) {
    if (signature->is_replayed || signature->is_given_up)
        return; /* another thread was first */
    if (v->reason[0]) {
        v->stale = refuse_locked(signature, v->reason, v->is_disturbed);
        return;
    }
    if (signature->program != v->before)
        return; /* another thread has recorded it anew, or dropped it */
    eddy_program *old = signature->program;
    signature->program = v->program;
    v->program = old;
    eddy_signature_note(signature, c->inputs, old != NULL);
    note_changes(signature);
    if (v->class)
        eddy_shape_class_check(v->class, v->sizes, v->is_as_foretold);
    if (!old && v->is_built)
        set_foretold(c, signature, v->class);
    if (!old)
        return;
    signature->is_replayed = v->is_built;
    signature->is_foretold = false;
    signature->differed = v->is_built ? 0 : signature->differed + 1;
    signature->is_given_up = signature->differed >= DIFFERENCES_MOST;
    memcpy(signature->reason, v->difference, sizeof(signature->reason));
    if (!v->is_built || !c->recorded->foretells || c->path_bytes > 0)
        return;
    v->stale = signature->source;
    signature->source = v->before;
    v->before = NULL;
    eddy_recorded_learn_class(c->recorded, signature);
}

/* The program of the recording before, a reference, or NULL. */
static eddy_program *find_before(const eddy_calling *c) {
    eddy_lock_acquire(&c->recorded->lock);
    const eddy_signature *signature = find_locked(c);
    eddy_program *before = signature && !signature->is_replayed && !signature->is_given_up
                               ? eddy_program_retain(signature->program)
                               : NULL;
    eddy_lock_release(&c->recorded->lock);
    return before;
}

/* A reference of the class that a call's key belongs to, or NULL. is_known: of one that knows its sizes. */
static eddy_shape_class *find_class(const eddy_calling *c, bool is_known, eddy_sizes *sizes) {
    if (!c->recorded->foretells || c->path_bytes > 0)
        return NULL;
    eddy_lock_acquire(&c->recorded->lock);
    eddy_recorded_dropped stale = {
        .classes = eddy_recorded_take_stale_classes(c->recorded, c->key, c->key_bytes)};
    eddy_shape_class *class = eddy_shape_class_retain(
        eddy_recorded_find_class(c->recorded, c->key, c->key_bytes, c->inputs, is_known, sizes));
    eddy_lock_release(&c->recorded->lock);
    eddy_recorded_drop(&stale);
    return class;
}

/* A recording of a size that the class does not know yet shows whether it is as foretold. OUT_OF_MEMORY. */
static eddy_status compare_with_class(const eddy_calling *c, verdict *v) {
    char difference[EDDY_RECORDING_REASON_BYTES];
    eddy_program *foretold = NULL;
    v->class = find_class(c, false, &v->sizes);
    if (!v->class)
        return EDDY_OK;
    eddy_status status = eddy_shape_class_foretell(v->class, v->sizes, &foretold);
    if (status == EDDY_OUT_OF_MEMORY)
        return status;
    if (status != EDDY_OK) { /* nothing is foretold of this size */
        eddy_lock_acquire(&c->recorded->lock);
        eddy_shape_class_note_untold(v->class, v->sizes);
        eddy_lock_release(&c->recorded->lock);
        eddy_shape_class_release(v->class);
        v->class = NULL;
        return EDDY_OK;
    }
    eddy_program_compare(foretold, v->program, difference, sizeof(difference));
    v->is_as_foretold = !difference[0];
    eddy_program_release(&foretold);
    return EDDY_OK;
}

/* Why a run on the path would take too much memory to be taken back; "" if it does not. */
static void judge_front(const eddy_program *program, char *reason, size_t size) {
    int64_t bytes = (int64_t)eddy_front_kept_bytes(program->executable);
    reason[0] = 0;
    if (bytes > KEPT_BYTES_MOST)
        snprintf(
            reason, size,
            "it writes %lld bytes of what was there before its last read, which each run would "
            "keep to put them back, and %d are the most: write them behind it",
            (long long)bytes, KEPT_BYTES_MOST);
}

/* Makes the program of a recording, compares it with the one before, and builds it if they are equal. A first one is built where it is as foretold: no second
 * one is needed. */
static eddy_status try_program(const eddy_calling *c, eddy_recording *recording, verdict *v) {
    eddy_status status = eddy_calling_make_program(c, recording, &v->program);
    if (status == EDDY_OK)
        eddy_calling_judge_ways(v->program, v->reason, sizeof(v->reason));
    if (status != EDDY_OK || v->reason[0])
        return status;
    v->before = find_before(c);
    if (v->before)
        eddy_program_compare(v->before, v->program, v->difference, sizeof(v->difference));
    if (!v->difference[0])
        status = compare_with_class(c, v);
    if (status != EDDY_OK || v->difference[0] || (!v->before && !v->is_as_foretold))
        return status;
    status = eddy_program_build(v->program, c->origin);
    v->is_built = status == EDDY_OK;
    if (v->is_built)
        judge_front(v->program, v->reason, sizeof(v->reason));
    return status;
}

/* The same, whose failure is no failure of the call. False without memory: nothing is known about the function then. */
static bool try_quietly(const eddy_calling *c, eddy_recording *recording, verdict *v) {
    eddy_quiet q;
    eddy_error error;
    eddy_quiet_begin(&q);
    eddy_status status = try_program(c, recording, v);
    eddy_quiet_end(&q, &error);
    if (status != EDDY_OK && status != EDDY_OUT_OF_MEMORY)
        snprintf(v->reason, sizeof(v->reason), "%.300s", error.message);
    return status != EDDY_OUT_OF_MEMORY;
}

/* "input1 = 3, what it computes = true" */
static void describe_values(const eddy_calling *c, char *text, size_t size) {
    const char *values = (const char *)c->key + c->kind_bytes,
               *path = (const char *)c->key + c->key_bytes - c->path_bytes;
    text[0] = 0;
    if (c->guards.count > 0)
        eddy_guard_describe(&c->guards, values, text, size);
    size_t length = strlen(text);
    if (c->path_bytes == 0 || length + 3 > size)
        return;
    length += (size_t)snprintf(text + length, size - length, "%s", length > 0 ? ", " : "");
    eddy_guard_describe(c->computed, path, text + length, size - length);
}

/* A new one, the first; NULL without memory. */
static eddy_signature *add_call_locked(const eddy_calling *c) {
    char with[200];
    eddy_signature *kind = find_kind_locked(c);
    if (kind)
        kind->values_left -= kind->values_left > 0;
    describe_values(c, with, sizeof(with));
    eddy_signature *signature =
        eddy_recorded_add_signature(c->recorded, c->key, c->key_bytes, c->inputs, with);
    if (signature)
        signature->path_bytes = c->path_bytes;
    return signature;
}

/* The call's signature stays: it is the first. */
static void trim_locked(const eddy_calling *c, eddy_recorded_dropped *dropped) {
    eddy_recorded_trim(c->recorded, dropped);
    if (c->guards.count > 0 || c->path_bytes > 0)
        eddy_recorded_trim_values(c->recorded, c->key, c->kind_bytes, VALUES_MOST, dropped);
}

/* A path that is not replayed was recorded once more, since no run can show that it is taken. */
static void charge_locked(const eddy_calling *c, const eddy_signature *signature) {
    eddy_signature *fork = signature->is_given_up && c->path_bytes > 0 ? find_kind_locked(c) : NULL;
    if (fork)
        fork->values_left -= fork->values_left > 0;
}

/* The program does not serve its calls any more: recording begins anew. Returns it, to release. */
static eddy_program *give_back_program(eddy_signature *signature, const char *miss) {
    eddy_program *stale = signature->program;
    signature->program = NULL;
    signature->bucket = NULL;
    signature->missed += signature->is_replayed;
    signature->is_replayed = false;
    signature->is_given_up = ++signature->differed >= DIFFERENCES_MOST;
    snprintf(signature->reason, sizeof(signature->reason), "%s", miss);
    return stale;
}

/* The path that the call has taken is replayed, but did not serve it. */
static eddy_program *drop_doubted(const eddy_calling *c, eddy_signature *signature) {
    return c->path_bytes > 0 && signature->is_replayed && signature->doubt
               ? give_back_program(signature, signature->doubt)
               : NULL;
}

/* verdict: NULL where the call was not recorded after all. */
static void put_down(eddy_calling *c, eddy_signature_outcome outcome, verdict *v) {
    eddy_lock_acquire(&c->recorded->lock);
    eddy_recorded_dropped dropped = {0};
    eddy_program *stale = NULL;
    eddy_signature *signature = find_locked(c);
    signature = signature ? signature : add_call_locked(c);
    if (signature) {
        signature->ran++;
        signature->outcome = outcome;
        charge_locked(c, signature);
        stale = drop_doubted(c, signature);
        if (v)
            settle_locked(c, signature, v);
        (void)find_kind_locked(c); /* is the second then */
        (void)find_locked(c);
        trim_locked(c, &dropped);
    }
    eddy_lock_release(&c->recorded->lock);
    eddy_program_release(&stale);
    eddy_recorded_drop(&dropped);
}

/* ---- guards ---- */

/* The function has read what no guard has: from now on that has one. */
static void learn_guards(const eddy_calling *c, const eddy_recording *recording) {
    eddy_program *stale = NULL;
    eddy_lock_acquire(&c->recorded->lock);
    eddy_recorded_dropped dropped = {0};
    eddy_signature *kind = eddy_recorded_find_signature(c->recorded, c->key, c->kind_bytes, 0);
    if (!kind)
        kind = eddy_recorded_add_signature(c->recorded, c->key, c->kind_bytes, c->inputs, "");
    if (kind) {
        kind->values_left = kind->guards.count > 0 ? kind->values_left : VALUES_FIRST;
        kind->ran++;
        kind->is_replayed = false;
        stale = kind->program;
        kind->program = NULL;
        if (!eddy_guard_add_all(&kind->guards, &recording->reads)) {
            kind->is_given_up = true;
            snprintf(kind->reason, sizeof(kind->reason),
                     "the function reads more than %d bytes of its inputs and its own tensors, or "
                     "more than %d of these",
                     EDDY_GUARD_BYTES_MOST, EDDY_GUARD_OWN_MOST);
        }
        eddy_recorded_trim(c->recorded, &dropped);
    }
    eddy_lock_release(&c->recorded->lock);
    eddy_program_release(&stale);
    eddy_recorded_drop(&dropped);
}

bool eddy_calling_read_guards(eddy_calling *c) {
    eddy_quiet q;
    eddy_error failed;
    size_t count = 0;
    eddy_lock_acquire(&c->recorded->lock);
    const eddy_signature *kind = find_locked(c);
    bool is_fine = !kind || kind->is_given_up || eddy_guard_add_all(&c->guards, &kind->guards);
    eddy_lock_release(&c->recorded->lock);
    if (!is_fine || c->guards.count == 0)
        return is_fine;
    eddy_quiet_begin(&q);
    eddy_status status =
        eddy_guard_read(&c->guards, c->inputs, c->origin, (char *)c->key + c->kind_bytes, &count);
    eddy_quiet_end(&q, &failed);
    c->key_bytes += count;
    return status == EDDY_OK;
}

/* ---- paths ---- */

/* What the recording has read of what it had computed becomes a part of the call's key, and the signature without it one of many. */
static void learn_path(eddy_calling *c, const eddy_recording *recording, verdict *v) {
    eddy_lock_acquire(&c->recorded->lock);
    eddy_signature *fork = find_locked(c);
    bool is_fork = fork && fork->forks[0];
    if (is_fork && recording->path_bytes == 0 && !v->reason[0])
        snprintf(v->reason, sizeof(v->reason), "%s, in some calls and not in others", fork->forks);
    if (!is_fork && recording->path_bytes > 0) {
        fork = fork ? fork : add_call_locked(c);
        if (fork) {
            memcpy(fork->forks, recording->first_computed, sizeof(fork->forks));
            fork->values_left = VALUES_FIRST;
            fork->trust = TRUST_FIRST;
            fork->is_replayed = false;
            v->stale = fork->program;
            fork->program = NULL;
            fork->bucket = NULL;
        }
    }
    eddy_lock_release(&c->recorded->lock);
    memcpy((char *)c->key + c->key_bytes, recording->path, recording->path_bytes);
    c->computed = &recording->computed;
    c->path_bytes = recording->path_bytes;
    c->key_bytes += recording->path_bytes;
}

static void settle(eddy_calling *c, eddy_recording *recording) {
    verdict v = {0};
    if (recording->status == EDDY_OUT_OF_MEMORY)
        return; /* it says nothing about the function */
    eddy_recording_judge(recording, v.reason, sizeof(v.reason));
    if (!v.reason[0] && !eddy_guard_has_all(&c->guards, &recording->reads)) {
        learn_guards(c, recording);
        return;
    }
    learn_path(c, recording, &v);
    if (!v.reason[0])
        eddy_calling_judge_gradient(c, recording, v.reason, sizeof(v.reason));
    bool is_known = v.reason[0] || try_quietly(c, recording, &v);
    v.is_disturbed = recording->is_disturbed;
    if (is_known)
        put_down(c, EDDY_SIGNATURE_RECORDED, &v);
    eddy_program_release(&v.program);
    eddy_program_release(&v.stale);
    eddy_program_release(&v.before);
    eddy_shape_class_release(v.class);
}

/* ---- a call ---- */

static eddy_status run_recorded(eddy_calling *c) {
    eddy_recording *recording = NULL;
    eddy_status status = eddy_calling_record(c, &recording);
    if (status == EDDY_OK && !c->has_failed)
        settle(c, recording);
    else if (recording)
        put_down(c, status == EDDY_OK ? EDDY_SIGNATURE_WENT_ON : EDDY_SIGNATURE_FAILED, NULL);
    eddy_recording_destroy(recording);
    return status;
}

static eddy_status run_eagerly(eddy_calling *c, const char *reason) {
    if (c->recorded->is_strict && reason[0])
        return eddy_fail(EDDY_UNSUPPORTED, c->origin, "it cannot be replayed: %s", reason);
    return eddy_calling_run(c, c->scalars.items);
}

/* The function runs after all: its arguments are not as those that were recorded. */
static void count_miss(const eddy_calling *c, const char *why) {
    eddy_lock_acquire(&c->recorded->lock);
    eddy_signature *signature = find_locked(c);
    if (signature)
        eddy_recorded_note_miss(signature, why);
    eddy_lock_release(&c->recorded->lock);
}

/* Why the program that is there does not serve this call, though its arguments are of the kind; NULL where it does. */
static const char *find_miss(const eddy_calling *c, const eddy_signature *signature) {
    if (!eddy_signature_fits_tape(signature->program, signature->tape_changes))
        return "gradients that the tape keeps, or what they go back to, have changed between "
               "two calls: eddy_backward_to keeps none";
    if (!eddy_signature_has_inputs(signature->inputs, c->inputs))
        return "an input was in the same place in two recordings, and then in another";
    return NULL;
}

/* A program that does not serve the call is given up: recording begins anew. Returns it, to release. */
static eddy_program *drop_stale_locked(const eddy_calling *c, eddy_signature *signature) {
    const char *miss =
        signature && signature->program && !signature->is_given_up ? find_miss(c, signature) : NULL;
    return miss ? give_back_program(signature, miss) : NULL;
}

/* A value that is new, and of which there were too many. */
static bool is_one_too_many(const eddy_signature *signature, const eddy_signature *kind) {
    return kind && !signature && kind->values_left == 0;
}

/* ---- shapes that were not recorded ---- */

/* The signature is one of a bucket's. Returns the class that it was of before, to release. */
static eddy_shape_class *set_bucket(eddy_signature *signature, eddy_shape_class *class,
                                    eddy_shape_bucket *bucket) {
    if (!bucket)
        return NULL;
    eddy_shape_class *before = signature->class;
    signature->class = eddy_shape_class_retain(class);
    signature->bucket = bucket;
    signature->program_bytes = eddy_program_bytes(signature->program);
    return before;
}

static void put_foretold(const eddy_calling *c, eddy_program *program, eddy_shape_class *class,
                         eddy_sizes sizes) {
    eddy_program *old = NULL;
    eddy_shape_class *before = NULL;
    eddy_recorded_dropped dropped = {0};
    eddy_lock_acquire(&c->recorded->lock);
    eddy_signature *signature = find_locked(c);
    signature = signature ? signature : add_call_locked(c);
    if (signature && !signature->is_replayed && !signature->is_given_up) {
        old = signature->program;
        signature->program = eddy_program_retain(program);
        set_foretold(c, signature, class);
        before = set_bucket(signature, class, eddy_shape_class_bucket(class, sizes));
        trim_locked(c, &dropped);
    }
    if (signature)
        eddy_recorded_note_replay(c->recorded, signature);
    eddy_lock_release(&c->recorded->lock);
    eddy_program_release(&old);
    eddy_shape_class_release(before);
    eddy_recorded_drop(&dropped);
}

/* A program that a class foretells for the call, which has none: a reference, or NULL. */
static eddy_program *foretell(eddy_calling *c) {
    eddy_sizes sizes;
    eddy_program *program = NULL;
    eddy_shape_class *class = find_class(c, true, &sizes);
    if (class &&
        eddy_shape_class_make(class, &c->recorded->lock, sizes, c->origin, &program) == EDDY_OK)
        put_foretold(c, program, class, sizes);
    eddy_shape_class_release(class);
    return program;
}

/* ---- a call ---- */

/* What is to happen to a call. */
typedef struct choice {
    eddy_program *program; /* a reference: that is replayed; NULL: */
    bool is_given_up;      /* the function just runs; */
    bool is_fork;          /* which path it takes shows; else it is recorded */
    char reason[320];      /* why it is given up */
} choice;

/* Returns a program that is to be released, or NULL. */
static eddy_program *choose_locked(const eddy_calling *c, choice *made) {
    eddy_signature *kind = find_kind_locked(c), *signature = find_locked(c);
    eddy_program *stale = drop_stale_locked(c, signature);
    int64_t size;
    *made = (choice){0};
    if (signature && signature->is_replayed) {
        made->program = eddy_program_retain(signature->program);
        eddy_recorded_note_replay(c->recorded, signature);
        earn_value(kind);
    } else if (signature && signature->is_given_up) {
        made->is_given_up = true;
        signature->ran++;
        memcpy(made->reason, signature->reason, sizeof(made->reason));
    } else if (signature && signature->forks[0]) {
        made->is_fork = true;
    } else if (is_one_too_many(signature, kind)) {
        made->is_given_up = true;
        kind->ran++;
        kind->missed++;
        snprintf(made->reason, sizeof(made->reason),
                 "what it reads of its inputs or its own tensors differs too often");
    } else if (eddy_recorded_is_beyond(c->recorded, c->key, c->key_bytes, &size)) {
        made->is_given_up = true;
        snprintf(made->reason, sizeof(made->reason), "the size %lld is above the largest, %lld",
                 (long long)size, (long long)c->recorded->edges[c->recorded->edge_count - 1]);
    }
    return stale;
}

/* ---- a call that takes one of many paths ---- */

/* What a call has read so far of what it has computed. */
typedef struct known_path {
    unsigned char values[EDDY_PATH_BYTES_MOST];
    uint32_t bytes, tries;
} known_path;

/* One that begins with what is known, and that serves such a call if it takes it; NULL: there is none. Which it takes nobody knows yet: those that do not serve it stay. */
static eddy_signature *find_fitting_locked(const eddy_calling *c, const known_path *known) {
    eddy_signature *at = c->recorded->first;
    while (at &&
           (at = eddy_recorded_find_path(at, c->key, c->key_bytes, known->values, known->bytes,
                                         false)) &&
           (at->doubt = find_miss(c, at)))
        at = at->next;
    return at;
}

/* Its program, a reference, and what its runs follow; false: there is none. */
static bool find_path(const eddy_calling *c, const known_path *known, eddy_program **program,
                      eddy_path **path) {
    *program = NULL;
    *path = NULL;
    eddy_lock_acquire(&c->recorded->lock);
    const eddy_signature *found = find_fitting_locked(c, known);
    if (found) {
        *program = eddy_program_retain(found->program);
        *path = eddy_path_create((const char *)found->key + c->key_bytes, found->path_bytes);
    }
    eddy_lock_release(&c->recorded->lock);
    if (!*path)
        eddy_program_release(program);
    return *path != NULL;
}

/* The path becomes the one that was taken last. */
static void note_path(const eddy_calling *c, const eddy_path *path) {
    memcpy((char *)c->key + c->key_bytes, path->recorded, path->bytes);
    eddy_lock_acquire(&c->recorded->lock);
    earn_value(find_kind_locked(c));
    eddy_signature *fork = find_locked(c),
                   *taken = eddy_recorded_find_signature(c->recorded, c->key,
                                                         c->key_bytes + path->bytes, path->bytes);
    earn_value(fork);
    if (fork) {
        fork->trust += fork->trust < TRUST_MOST;
        fork->differed = 0;
    }
    if (taken)
        eddy_recorded_note_replay(c->recorded, taken);
    eddy_lock_release(&c->recorded->lock);
}

/* The path that was read as a whole, if it is not replayed; before anything was read, any. NULL: there is none. A longer path may be another one yet. */
static eddy_signature *find_refused_locked(const eddy_calling *c, const known_path *known) {
    eddy_signature *refused = eddy_recorded_find_path(c->recorded->first, c->key, c->key_bytes,
                                                      known->values, known->bytes, true);
    return refused && known->bytes > 0 && refused->path_bytes != known->bytes ? NULL : refused;
}

/* What it reads differs too often. refused: one of its paths, that is not replayed, or NULL. */
static void explain_fork(eddy_signature *fork, const eddy_signature *refused) {
    if (refused)
        memcpy(fork->reason, refused->reason, sizeof(fork->reason));
    else
        snprintf(fork->reason, sizeof(fork->reason), "%s, and differs too often; %s", fork->forks,
                 EDDY_HOST_READ_INSTEAD);
}

/* No path is replayed, and none is recorded any more. */
static void give_up_paths_locked(const eddy_calling *c, eddy_signature *fork,
                                 eddy_recorded_dropped *dropped) {
    fork->is_given_up = true;
    eddy_recorded_trim_values(c->recorded, c->key, c->key_bytes, 0, dropped);
}

/* The function runs, for no path that is replayed is its. It is not recorded where its path was refused before, or its paths are too many. */
static void leave_paths_locked(const eddy_calling *c, const known_path *known, choice *made,
                               eddy_recorded_dropped *dropped) {
    eddy_signature *fork = find_locked(c);
    if (!fork)
        return;
    eddy_signature *refused = find_refused_locked(c, known);
    bool has_replayed = eddy_recorded_find_path(c->recorded->first, c->key, c->key_bytes,
                                                known->values, 0, false) != NULL;
    fork->missed += known->tries > 0;
    fork->trust -= known->tries > 0 && fork->trust > 0;
    if (fork->values_left == 0) {
        explain_fork(fork, refused);
        refused = fork;
    } else if (known->tries == 0) {
        refused = NULL;
    }
    if (!refused)
        return;
    made->is_given_up = true;
    refused->ran++;
    memcpy(made->reason, refused->reason, sizeof(made->reason));
    if (refused == fork && !has_replayed)
        give_up_paths_locked(c, fork, dropped);
}

static void leave_paths(const eddy_calling *c, const known_path *known, choice *made) {
    eddy_recorded_dropped dropped = {0};
    eddy_lock_acquire(&c->recorded->lock);
    leave_paths_locked(c, known, made, &dropped);
    eddy_lock_release(&c->recorded->lock);
    eddy_recorded_drop(&dropped);
}

/* Whether a path is tried, though it may be in vain. A strict function does not run for that reason. */
static bool may_try(const eddy_calling *c) {
    eddy_lock_acquire(&c->recorded->lock);
    eddy_signature *fork = find_locked(c);
    bool may = !fork || c->recorded->is_strict || fork->trust > 0 || fork->untried == UNTRIED_MOST;
    if (fork) {
        fork->untried = may ? 0 : fork->untried + 1;
        fork->ran += !may;
    }
    eddy_lock_release(&c->recorded->lock);
    return may;
}

/* The path that was taken last is tried. Where its run leaves it, one is that begins with what that has read. */
static eddy_status follow_paths(eddy_calling *c) {
    known_path known = {.bytes = 0};
    eddy_program *program;
    eddy_path *path;
    choice made = {0};
    if (!may_try(c))
        return eddy_calling_run(c, c->scalars.items);
    for (; known.tries < TRIES_MOST && find_path(c, &known, &program, &path); known.tries++) {
        const char *unfit = NULL;
        eddy_status status = eddy_program_run_with(program, c->inputs, c->scalars.items, c->outputs,
                                                   path, &unfit, c->origin);
        if (!unfit && status == EDDY_OK)
            note_path(c, path);
        bool is_left = unfit && path->is_left, has_failed = unfit && path->has_failed;
        if (is_left) { /* else it may run on, after a shutdown */
            memcpy(known.values, path->values, path->seen);
            known.bytes = path->seen;
        }
        eddy_path_release(path);
        eddy_program_release(&program);
        if (!unfit)
            return status;
        if (!is_left || has_failed) {
            count_miss(c, unfit);
            return run_eagerly(c, has_failed ? "" : unfit);
        }
    }
    if (known.tries == TRIES_MOST) {
        count_miss(c, "it has more paths than one call tries");
        return run_eagerly(c, "it has more paths than one call tries");
    }
    leave_paths(c, &known, &made);
    return made.is_given_up ? run_eagerly(c, made.reason) : run_recorded(c);
}

static eddy_status replay(eddy_calling *c, eddy_program *program) {
    const char *unfit = NULL;
    eddy_status status = eddy_program_run_with(program, c->inputs, c->scalars.items, c->outputs,
                                               NULL, &unfit, c->origin);
    if (!unfit)
        return status;
    count_miss(c, unfit);
    return run_eagerly(c, unfit);
}

eddy_status eddy_calling_choose(eddy_calling *c) {
    choice made;
    eddy_lock_acquire(&c->recorded->lock);
    eddy_program *stale = choose_locked(c, &made);
    eddy_lock_release(&c->recorded->lock);
    eddy_program_release(&stale);
    if (made.is_given_up)
        return run_eagerly(c, made.reason);
    if (made.is_fork)
        return follow_paths(c);
    if (!made.program)
        made.program = foretell(c);
    if (!made.program)
        return run_recorded(c);
    eddy_status status = replay(c, made.program);
    eddy_program_release(&made.program);
    return status;
}
