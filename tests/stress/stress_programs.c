/* Random programs against the sequential oracle, on every path.
 *
 *   stress_programs PROGRAMS [SEED [THREADS]]
 *
 * Each program runs once on each of: the caller's path, the scheduler's, the workers', one-thread mode with fake streams whose
 * every completion is drawn from the seed. On the threaded paths several issuing threads pass the program's steps round,
 * handing tensors on. Values, poison and blame must equal the oracle's. Prints the seed of the first difference. */
#include "program.h"

#include "../vm/synthetic.h"
#include <base/sleep.h>
#include <base/status.h>
#include <pthread.h>
#include <stdlib.h>
#include <streams/fake.h>
#include <vm/node.h>
#include <vm/stream.h>

#define THREADS_MAX 4

typedef struct stress_run {
    const random_program *program;
    const char *path;
    eddy_vm *vm;
    eddy_vm_stream *streams[PROGRAM_STREAMS];
    eddy_stream *fakes[PROGRAM_STREAMS]; /* NULL on the threaded paths */
    uint64_t choices;                    /* state of the schedule's random numbers */
    eddy_storage_number storages[PROGRAM_SLOTS];
    program_slot slots[PROGRAM_SLOTS]; /* the oracle's, in step with the run */
    eddy_vm_lend *lends[PROGRAM_SLOTS];
    int thread_count;
    _Atomic int turn; /* atomic: the next step; release hands the slots on */
} stress_run;

static _Noreturn void differ(const stress_run *run, int step, const char *what, int64_t expected, int64_t found) {
    fprintf(stderr, "program %llu, path %s, step %d: %s: expected %lld, found %lld\n",
            (unsigned long long)run->program->seed, run->path, step, what, (long long)expected, (long long)found);
    abort();
}

static const eddy_vm_wait forever = {EDDY_SLEEP_FOREVER, "stress", NULL};

/* ---- fakes ---- */

static eddy_status decide(void *context, const eddy_stream_work *work) {
    (void)context;
    const eddy_node *node = (const eddy_node *)(const void *)((const char *)work - offsetof(eddy_node, work));
    const synthetic_arguments *arguments = node->instruction.arguments;
    return arguments->fails == 2 ? EDDY_DEVICE_LOST : EDDY_OK;
}

/* Lets `steps` held works go, or all of them where it is negative. */
static void pump(stress_run *run, int steps) {
    while (steps != 0 && run->fakes[1]) {
        int first = 1 + (int)(program_random(&run->choices) % 2);
        uint64_t choice = program_random(&run->choices);
        if (!eddy_fake_stream_step(run->fakes[first], choice, decide, NULL) &&
            !eddy_fake_stream_step(run->fakes[3 - first], choice, decide, NULL))
            return;
        steps--;
    }
}

/* Before a step that blocks: nothing but this thread moves the fakes. */
static void settle(stress_run *run) {
    pump(run, -1);
}

/* ---- steps ---- */

static void submit(stress_run *run, int index, const program_step *step) {
    bool is_new = step->kind == STEP_MAKE || step->kind == STEP_MAKE_TWO || step->kind == STEP_LATE;
    synthetic_arguments arguments = {.seed = step->seed,
                                     .sleep_ns = step->sleep_ns,
                                     .fails = step->stream_fails ? 2 : step->fails,
                                     .late_count = step->count};
    eddy_vm_operand operands[5] = {0};
    int count = 0;
    for (; count < step->input_count; count++)
        operands[count].storage = run->storages[step->inputs[count]];
    int targets[2] = {step->target, step->second};
    for (int t = 0; t < (step->kind == STEP_MAKE_TWO ? 2 : 1); t++, count++) {
        operands[count].storage = is_new ? 0 : run->storages[targets[t]];
        operands[count].access = step->kind == STEP_LATE ? EDDY_ACCESS_MUT2 : EDDY_ACCESS_MUT;
        operands[count].is_new = is_new;
        operands[count].covers_all = is_new || step->kind == STEP_OVERWRITE;
        operands[count].bytes = step->count * 8;
        arguments.accesses |= (int64_t)(step->kind == STEP_IN_PLACE ? 2 : 1) << 2 * count;
    }
    eddy_vm_call call = {.descriptor = step->kind == STEP_LATE ? &synthetic_late_op : &synthetic_op,
                         .operands = operands,
                         .operand_count = count,
                         .arguments = &arguments,
                         .argument_bytes = sizeof(arguments),
                         .stream = run->streams[step->stream],
                         .cost_ps = step->cost_ps};
    if (eddy_vm_submit(run->vm, &call) != EDDY_OK)
        differ(run, index, "submit", 0, 1);
    if (is_new) {
        int first = step->input_count;
        run->storages[step->target] = operands[first].storage;
        if (step->kind == STEP_MAKE_TWO)
            run->storages[step->second] = operands[first + 1].storage;
    }
}

static eddy_status expected_status(const program_slot *slot, bool is_stream_failure) {
    switch (slot->state) {
    case SLOT_LOST:
        return is_stream_failure ? EDDY_DEVICE_LOST : EDDY_OUT_OF_RANGE;
    case SLOT_SKIPPED:
        return EDDY_SKIPPED;
    case SLOT_TORN:
        return EDDY_TORN;
    default:
        return EDDY_OK;
    }
}

/* Compares the status and the blame of a failed read with the oracle's. */
static void check_error(stress_run *run, int index, const program_slot *slot, eddy_status status) {
    const program_step *root = slot->state > SLOT_HEALTHY ? &run->program->steps[slot->root_order] : NULL;
    eddy_status expected = expected_status(slot, root && root->stream_fails);
    if (status != expected)
        differ(run, index, "status", expected, status);
    eddy_error error;
    eddy_error_take(&error);
    if (status == EDDY_OK || root->stream_fails)
        return;
    char text[64];
    snprintf(text, sizeof(text), "seed %lld", (long long)slot->root_seed);
    if (!strstr(error.message, text)) {
        fprintf(stderr, "message: %s\n", error.message);
        differ(run, index, "blame", slot->root_seed, (int64_t)error.sequence);
    }
}

static void check_slot(stress_run *run, int index, int number) {
    const program_slot *slot = &run->slots[number];
    int64_t found = 0;
    eddy_storage_number storage = run->storages[number];
    if (slot->state == SLOT_HEALTHY && slot->count > 0) {
        int64_t cell = index % slot->count;
        eddy_status status = eddy_vm_read_small(run->vm, storage, cell * 8, 8, &found, &forever);
        check_error(run, index, slot, status);
        if (found != slot->cells[cell])
            differ(run, index, "value", slot->cells[cell], found);
        return;
    }
    check_error(run, index, slot, eddy_vm_wait_storage(run->vm, storage, &forever));
    if (slot->state == SLOT_HEALTHY && slot->is_late) {
        eddy_shape shape;
        if (eddy_vm_late_shape(run->vm, storage, &forever, &shape) != EDDY_OK || shape.dims[0] != slot->count)
            differ(run, index, "late shape", slot->count, shape.dims[0]);
    }
}

static void lend(stress_run *run, int index, const program_step *step) {
    settle(run);
    void *data;
    eddy_vm_lend *lend;
    eddy_status status = eddy_vm_lend_begin(run->vm, run->storages[step->target], true, &forever, &data, &lend);
    const program_slot *slot = &run->slots[step->target];
    check_error(run, index, slot, status);
    if (status != EDDY_OK)
        return;
    int64_t *cells = data;
    for (int64_t c = 0; c < slot->count; c++)
        if (cells[c] != slot->cells[c])
            differ(run, index, "lent value", slot->cells[c], cells[c]);
    if (slot->count > 0)
        cells[0] = synthetic_mix(cells[0], step->seed);
    /* One that stays open holds back what follows until the next step that waits. */
    if (step->lend_stays)
        run->lends[step->target] = lend;
    else
        eddy_vm_lend_end(run->vm, lend, false);
}

static void end_lends(stress_run *run) {
    for (int i = 0; i < PROGRAM_SLOTS; i++) {
        if (run->lends[i])
            eddy_vm_lend_end(run->vm, run->lends[i], false);
        run->lends[i] = NULL;
    }
}

static void order_streams(stress_run *run, int index, const program_step *step) {
    eddy_vm_event *event;
    if (eddy_vm_event_record(run->vm, run->streams[step->stream], NULL, &event) != EDDY_OK)
        differ(run, index, "event", 0, 1);
    int other = (step->stream + 1 + (int)(step->seed % (PROGRAM_STREAMS - 1))) % PROGRAM_STREAMS;
    if (eddy_vm_stream_wait(run->vm, run->streams[other], event, NULL) != EDDY_OK)
        differ(run, index, "stream wait", 0, 1);
    eddy_vm_event_release(event);
}

/* What is still unseen was caused on purpose. */
static void sync_all(stress_run *run) {
    if (eddy_vm_sync(run->vm, &forever, NULL) != EDDY_OK)
        eddy_error_take(NULL);
}

static void run_step(stress_run *run, int index) {
    const program_step *step = &run->program->steps[index];
    bool waits = step->kind >= STEP_READ && step->kind <= STEP_SYNC;
    if (waits) {
        end_lends(run);
        settle(run);
    }
    switch (step->kind) {
    case STEP_RELEASE:
        synthetic_release(run->vm, run->storages[step->target]);
        break;
    case STEP_READ:
        check_slot(run, index, step->target);
        break;
    case STEP_LEND:
        lend(run, index, step);
        break;
    case STEP_RECOVER:
        check_slot(run, index, step->target);
        if (eddy_vm_recover(run->vm, &run->storages[step->target], 1, NULL) != EDDY_OK)
            differ(run, index, "recover", 0, 1);
        break;
    case STEP_SYNC:
        sync_all(run);
        break;
    case STEP_ORDER:
        order_streams(run, index, step);
        break;
    default:
        submit(run, index, step);
        break;
    }
    program_oracle(run->program, index, run->slots);
    pump(run, (int)(program_random(&run->choices) % 3));
}

/* ---- threads ---- */

typedef struct stress_issuer {
    stress_run *run;
    int number;
} stress_issuer;

/* Which thread issues a step: drawn from the program's seed. */
static int issuer_of(const stress_run *run, int index) {
    uint64_t state = run->program->seed * 31 + (uint64_t)index * 7 + 1;
    program_random(&state);
    return (int)(program_random(&state) % (uint64_t)run->thread_count);
}

static void *issue(void *context) {
    stress_issuer *issuer = context;
    stress_run *run = issuer->run;
    for (;;) {
        int turn = eddy_load_acquire(&run->turn);
        if (turn >= run->program->step_count)
            return NULL;
        if (issuer_of(run, turn) != issuer->number) {
            sched_yield();
            continue;
        }
        run_step(run, turn);
        eddy_store_release(&run->turn, turn + 1);
    }
}

static void run_steps(stress_run *run) {
    pthread_t threads[THREADS_MAX];
    stress_issuer issuers[THREADS_MAX];
    for (int i = 0; i < run->thread_count; i++) {
        issuers[i] = (stress_issuer){run, i};
        if (i > 0)
            pthread_create(&threads[i], NULL, issue, &issuers[i]);
    }
    issue(&issuers[0]);
    for (int i = 1; i < run->thread_count; i++)
        pthread_join(threads[i], NULL);
}

static void finish(stress_run *run) {
    int last = run->program->step_count;
    end_lends(run);
    settle(run);
    for (int i = 0; i < PROGRAM_SLOTS; i++) {
        if (run->slots[i].state == SLOT_EMPTY)
            continue;
        check_slot(run, last, i);
        synthetic_release(run->vm, run->storages[i]);
    }
    sync_all(run);
    eddy_vm_counters counters = eddy_vm_counters_read(run->vm);
    if (counters.errors_made != counters.errors_seen)
        differ(run, last, "errors seen", (int64_t)counters.errors_made, (int64_t)counters.errors_seen);
}

/* ---- paths ---- */

typedef struct stress_path {
    const char *name;
    eddy_runtime_options options;
    bool has_fakes;
    int thread_count;
    stress_run run; /* the VM lives through many programs, as it does for a user */
} stress_path;

static void path_open(stress_path *path) {
    if (eddy_vm_create(&path->options, &path->run.vm) != EDDY_OK)
        abort();
    for (int i = 1; i < PROGRAM_STREAMS; i++) {
        bool is_ordered = path->has_fakes ? i == 1 : true;
        eddy_status status;
        if (path->has_fakes) {
            path->run.fakes[i] = eddy_fake_stream_create(is_ordered);
            status = eddy_vm_stream_add(path->run.vm, path->run.fakes[i], true, &path->run.streams[i]);
        } else {
            status = eddy_vm_stream_create(path->run.vm, is_ordered, 0, &path->run.streams[i]);
        }
        if (status != EDDY_OK)
            abort();
    }
}

static void path_run(stress_path *path, const random_program *program) {
    stress_run *run = &path->run;
    run->program = program;
    run->path = path->name;
    run->thread_count = path->thread_count;
    run->choices = program->seed * 77 + 5;
    memset(run->slots, 0, sizeof(run->slots));
    memset(run->lends, 0, sizeof(run->lends));
    eddy_store_relaxed(&run->turn, 0);
    run_steps(run);
    finish(run);
}

static void path_close(stress_path *path) {
    for (int i = 1; i < PROGRAM_STREAMS; i++)
        eddy_vm_stream_release(path->run.streams[i]);
    if (eddy_vm_close(path->run.vm, 60000000000) != EDDY_OK)
        abort();
    eddy_vm_destroy(path->run.vm);
}

int main(int argc, char **argv) {
    long programs = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int threads = argc > 3 ? atoi(argv[3]) : 2;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    static stress_path paths[] = {
        {.name = "caller", .options = {.threads = 2}},
        {.name = "scheduler", .options = {.threads = 2, .full_path = true}},
        {.name = "worker", .options = {.threads = 3, .worker_path = true}},
        {.name = "fakes", .options = {.one_thread = true}, .has_fakes = true, .thread_count = 1},
        {.name = "one thread", .options = {.one_thread = true}, .thread_count = 1},
    };
    int count = (int)(sizeof(paths) / sizeof(paths[0]));
    for (int i = 0; i < count; i++) {
        if (paths[i].thread_count == 0)
            paths[i].thread_count = threads;
        path_open(&paths[i]);
    }
    for (long p = 0; p < programs; p++) {
        random_program program;
        for (int i = 0; i < count; i++) {
            program_make(&program, seed + (uint64_t)p, paths[i].has_fakes);
            path_run(&paths[i], &program);
        }
    }
    for (int i = 0; i < count; i++)
        path_close(&paths[i]);
    for (int p = 0; p < EDDY_MEMORY_PURPOSE_COUNT; p++)
        if (eddy_memory_counted((eddy_memory_purpose)p).bytes != 0) {
            fprintf(stderr, "leak: purpose %d, %lld bytes\n", p,
                    (long long)eddy_memory_counted((eddy_memory_purpose)p).bytes);
            return 1;
        }
    printf("%ld programs on %d paths agree with the oracle (seed %llu)\n", programs, count, (unsigned long long)seed);
    return 0;
}
