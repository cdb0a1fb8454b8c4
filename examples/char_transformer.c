/* Trains a small transformer on the characters of any text, and generates text with it. `char_transformer --help` lists the options. */
#include "checkpoint.h"
#include "text.h"
#include "transformer.h"
#include "turns.h"

#include <eddy/eddy.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RATE_MOST 2e-3
#define RATE_LEAST 2e-4
#define WARM_STEPS 50
#define EVALUATE_EVERY 100
#define FILES_MAX 256

static const char help[] =
    "usage: char_transformer [options] [FILE or folder ..]\n"
    "Trains a transformer on text (/usr/share/common-licenses), the last tenth of each file held "
    "out.\n"
    "  --steps N          steps of training (800); 0: none, the checkpoint is read\n"
    "  --checkpoint FILE  where the best weights go (char_transformer.safetensors)\n"
    "  --batch N          windows of 128 characters a step (16)\n"
    "  --replay           records the step of training and replays it: the same numbers\n"
    "  --losses FILE      writes the loss of each step, a hexadecimal float per line\n"
    "  --threads N        threads that compute (all); the numbers do not depend on it\n"
    "  --seed N           of weights, windows and the sample (1)\n"
    "  --sample N         characters that the best weights write at the end (400)\n";

struct settings {
    int64_t steps, batch, threads, seed, sample;
    const char *checkpoint, *losses; /* losses: or NULL */
    bool is_replayed;
    char *paths[FILES_MAX];
    int path_count;
};

/* ---- settings ---- */

static bool read_number(const char *name, const char *text, int64_t least, int64_t *value) {
    char *end = NULL;
    long long parsed = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end || parsed < least || parsed > 1000000000) {
        fprintf(stderr, "char_transformer: %s needs a whole number from %lld on\n", name,
                (long long)least);
        return false;
    }
    *value = parsed;
    return true;
}

/* Returns 1 to go on, 0 if the help was printed, -1 on a wrong option. */
static int read_settings(int argc, char **argv, struct settings *s) {
    static char licences[] = "/usr/share/common-licenses";
    *s = (struct settings){.steps = 800,
                           .batch = 16,
                           .seed = 1,
                           .sample = 400,
                           .checkpoint = "char_transformer.safetensors"};
    const struct {
        const char *name;
        int64_t *value, least;
    } numbers[] = {{"--steps", &s->steps, 0},
                   {"--batch", &s->batch, 1},
                   {"--threads", &s->threads, 1},
                   {"--seed", &s->seed, 0},
                   {"--sample", &s->sample, 0}};
    for (int i = 1; i < argc; i++) {
        size_t n = 0, count = sizeof(numbers) / sizeof(numbers[0]);
        while (n < count && strcmp(argv[i], numbers[n].name) != 0)
            n++;
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return 0;
        }
        if (n < count) {
            if (!read_number(argv[i], argv[i + 1], numbers[n].least, numbers[n].value))
                return -1;
            i++;
        } else if (strcmp(argv[i], "--replay") == 0) {
            s->is_replayed = true;
        } else if (strcmp(argv[i], "--checkpoint") == 0 || strcmp(argv[i], "--losses") == 0) {
            const char **file = strcmp(argv[i], "--losses") == 0 ? &s->losses : &s->checkpoint;
            if (i + 1 == argc) {
                fprintf(stderr, "char_transformer: %s needs a file\n", argv[i]);
                return -1;
            }
            *file = argv[++i];
        } else if (argv[i][0] == '-' || s->path_count == FILES_MAX) {
            fprintf(stderr, "char_transformer: unknown option %s (--help lists them)\n", argv[i]);
            return -1;
        } else {
            s->paths[s->path_count++] = argv[i];
        }
    }
    if (s->path_count == 0)
        s->paths[s->path_count++] = licences;
    return 1;
}

/* ---- batches ---- */

/* Windows of `numbers` that begin at the positions `starts`, i64[B, 1]. Returns i64[B, length]. */
static eddy_tensor *windows(eddy_tensor *numbers, eddy_tensor *starts, int64_t length) {
    eddy_tensor *offsets = eddy_arange(EDDY_S(0), EDDY_S(length), EDDY_S(1), EDDY_I64, NULL);
    eddy_tensor *places = eddy_add(starts, offsets);
    eddy_tensor *picked = eddy_index_select(numbers, eddy_reshape(places, EDDY_SHAPE(-1)), 0);
    return eddy_reshape(picked, EDDY_SHAPE(-1, length));
}

static double learning_rate(const struct settings *s, int64_t step) {
    if (step < WARM_STEPS)
        return RATE_MOST * (double)(step + 1) / WARM_STEPS;
    double done =
        (double)(step - WARM_STEPS) / (double)(s->steps > WARM_STEPS ? s->steps - WARM_STEPS : 1);
    return RATE_LEAST + 0.5 * (RATE_MOST - RATE_LEAST) * (1 + cos(M_PI * done));
}

/* Training under way. */
struct training {
    const struct settings *settings;
    const struct text *text;
    transformer *net;
    FILE *losses;            /* or NULL */
    eddy_recorded *recorded; /* the step; NULL if steps are not replayed */
    turns turns;
    double begin_s;
};

/* The step as a function that can be recorded: the input is a batch, the number is the rate, the output is the loss. */
static eddy_status run_step(void *context, eddy_recorded_call *call) {
    call->outputs[0] = transformer_train(context, call->inputs.items[0], call->scalars[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Issues one step, by calls or as a replay of them. Returns its loss without waiting for it, or NULL on failure. */
static eddy_tensor *train_step(struct training *t, int64_t step) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t length = t->net->size.sequence + 1;
    eddy_tensor *starts = eddy_randint(0, t->text->counts[0] - length + 1,
                                       EDDY_SHAPE(t->settings->batch, 1), EDDY_I64, NULL);
    eddy_tensor *batch = windows(t->text->numbers[0], starts, length), *loss = NULL;
    eddy_scalar rate = EDDY_S(learning_rate(t->settings, step));
    if (t->recorded && turns_is_replayed(step))
        (void)eddy_recorded_run(t->recorded, EDDY_LIST(batch), EDDY_SCALARS(rate), &loss);
    else
        loss = transformer_train(t->net, batch, rate);
    turns_count(&t->turns, step);
    loss = eddy_scope_return(scope, loss);
    eddy_scope_end(scope);
    return loss;
}

/* Mean loss on the held-out text, in windows that do not overlap. False on failure. */
static bool evaluate(const struct settings *s, const struct text *text, const transformer *net,
                     double *mean) {
    int64_t length = net->size.sequence + 1, count = (text->counts[1] - 1) / net->size.sequence;
    double sum = 0;
    bool is_fine = true;
    eddy_no_grad_begin();
    for (int64_t first = 0; first < count && is_fine; first += s->batch) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t batch = count - first < s->batch ? count - first : s->batch;
        eddy_tensor *starts =
            eddy_arange(EDDY_S(first), EDDY_S(first + batch), EDDY_S(1), EDDY_I64, NULL);
        starts = eddy_reshape(eddy_mul_s(starts, EDDY_S(net->size.sequence)), EDDY_SHAPE(-1, 1));
        double loss;
        is_fine = eddy_read_f64(transformer_loss(net, windows(text->numbers[1], starts, length)),
                                &loss, NULL) == EDDY_OK;
        sum += is_fine ? loss * (double)batch : 0;
        eddy_scope_end(scope);
    }
    eddy_no_grad_end();
    *mean = sum / (double)count;
    return is_fine;
}

/* ---- training ---- */

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* `loss`: the previous step's; NAN if there was none. */
static void show(int64_t step, const struct settings *s, double loss, double begin) {
    double spent = seconds_now() - begin, left = spent / (double)step * (double)(s->steps - step);
    if (isatty(STDOUT_FILENO) && !isnan(loss)) {
        printf("\rstep %lld of %lld, loss %.3f, %.0f s left   ", (long long)step,
               (long long)s->steps, loss, left);
        fflush(stdout);
    }
}

static bool read_loss(const struct training *t, eddy_tensor *last, double *loss) {
    if (eddy_read_f64(last, loss, NULL) != EDDY_OK)
        return false;
    if (t->losses)
        fprintf(t->losses, "%a\n", *loss);
    return true;
}

/* Mean loss on the held-out text; the weights are saved if it is the best so far. */
static bool look_at(const struct training *t, int64_t step, double loss, double *best) {
    double held_out;
    if (!evaluate(t->settings, t->text, t->net, &held_out))
        return false;
    printf("%sstep %lld, training %.3f, validation %.3f, %.0f s\n",
           isatty(STDOUT_FILENO) ? "\r" : "", (long long)step, loss, held_out,
           seconds_now() - t->begin_s);
    fflush(stdout);
    if (!(held_out < *best))
        return true;
    *best = held_out;
    return checkpoint_save(t->net, t->text, step, held_out, t->settings->checkpoint);
}

/* Reads a step's loss when the next one has been issued: the loop runs one step ahead of the workers. */
static bool train_all(struct training *t, double *best) {
    int64_t steps = t->settings->steps;
    double loss = NAN;
    eddy_tensor *last = NULL;
    bool is_fine = true;
    for (int64_t step = 0; step < steps && is_fine; step++) {
        if (t->recorded && turns_is_due(&t->turns, step)) {
            is_fine = eddy_sync(EDDY_FOREVER) == EDDY_OK;
            turns_begin(&t->turns, step);
        }
        eddy_tensor *now = is_fine ? train_step(t, step) : NULL;
        is_fine = now && (!last || read_loss(t, last, &loss));
        eddy_release(&last);
        last = now;
        if (is_fine)
            show(step + 1, t->settings, loss, t->begin_s);
        bool is_last = step + 1 == steps;
        if (is_fine && (is_last || (step + 1) % EVALUATE_EVERY == 0)) {
            is_fine =
                eddy_sync(EDDY_FOREVER) == EDDY_OK && eddy_read_f64(last, &loss, NULL) == EDDY_OK;
            turns_pause(&t->turns);
            is_fine = is_fine && look_at(t, step + 1, loss, best);
        }
    }
    is_fine = is_fine && read_loss(t, last, &loss);
    eddy_release(&last);
    return is_fine;
}

static void explain(const struct training *t) {
    char text[1024];
    if (!t->recorded || eddy_recorded_explain(t->recorded, text, sizeof(text)) < 0)
        return;
    printf("%s", text);
    turns_print(&t->turns);
}

static bool train(const struct settings *s, const struct text *text, transformer *net, FILE *losses,
                  double *best) {
    struct training t = {
        .settings = s, .text = text, .net = net, .losses = losses, .begin_s = seconds_now()};
    turns_init(&t.turns);
    *best = INFINITY;
    bool is_fine = !s->is_replayed || (t.recorded = eddy_recorded_create(run_step, net, 1, NULL));
    is_fine = is_fine && train_all(&t, best);
    if (is_fine)
        explain(&t);
    eddy_recorded_release(&t.recorded);
    return is_fine;
}

/* ---- writing ---- */

/* Writes `s->sample` characters, each drawn with the probabilities that the network computes. */
static bool write_sample(const struct settings *s, const struct text *text,
                         const transformer *net) {
    eddy_tensor *seen = eddy_narrow(text->numbers[1], 0, 0, 1);
    seen = eddy_reshape(seen, EDDY_SHAPE(1, 1));
    bool is_fine = seen != NULL;
    eddy_no_grad_begin();
    for (int64_t i = 0; i < s->sample && is_fine; i++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t length = eddy_dim_of(seen, 1),
                kept = length < net->size.sequence ? length : net->size.sequence;
        eddy_tensor *window = eddy_narrow(seen, 1, length - kept, kept);
        eddy_tensor *logits =
            eddy_select(eddy_select(transformer_logits(net, window), 1, -1), 0, 0);
        eddy_tensor *drawn = eddy_multinomial(eddy_softmax(logits, 0), 1, NULL);
        int64_t number;
        is_fine = eddy_read_i64(drawn, &number, NULL) == EDDY_OK;
        if (is_fine)
            putchar(text->bytes[number]);
        eddy_tensor *more = eddy_cat(EDDY_LIST(window, eddy_reshape(drawn, EDDY_SHAPE(1, 1))), 1);
        eddy_tensor *before = seen;
        seen = eddy_scope_return(scope, more);
        eddy_scope_end(scope);
        eddy_release(&before);
    }
    eddy_no_grad_end();
    eddy_release(&seen);
    putchar('\n');
    return is_fine;
}

static bool run(const struct settings *s, const struct text *text, FILE *losses) {
    const struct transformer_size size = {.vocabulary = text->vocabulary,
                                          .width = 128,
                                          .layers = 4,
                                          .heads = 4,
                                          .hidden = 344,
                                          .sequence = 128};
    transformer net;
    double best = INFINITY;
    if (text->counts[0] <= size.sequence || text->counts[1] <= size.sequence) {
        fprintf(
            stderr,
            "char_transformer: the text is too short: %lld characters to train on, %lld held out\n",
            (long long)text->counts[0], (long long)text->counts[1]);
        return false;
    }
    bool is_fine = transformer_init(&net, &size);
    if (is_fine)
        printf("%lld characters of %lld kinds, %lld weights\n", (long long)text->counts[0],
               (long long)text->vocabulary, (long long)transformer_weights(&net));
    if (is_fine && s->steps > 0)
        is_fine = train(s, text, &net, losses, &best);
    if (is_fine && s->steps > 0 && best == INFINITY) {
        fputs("char_transformer: the validation loss was never finite\n", stderr);
        is_fine = false;
    }
    is_fine = is_fine && checkpoint_load(&net, text, s->checkpoint);
    if (is_fine && s->steps == 0)
        is_fine = evaluate(s, text, &net, &best);
    is_fine = is_fine && write_sample(s, text, &net);
    transformer_fini(&net);
    if (is_fine)
        printf("validation loss %.3f\n", best);
    return is_fine;
}

int main(int argc, char **argv) {
    struct settings s;
    struct text text = {0};
    int outcome = read_settings(argc, argv, &s);
    if (outcome <= 0)
        return outcome < 0;
    if (s.steps > 0 && !checkpoint_can_be_saved(s.checkpoint))
        return 1;
    FILE *losses = NULL;
    if (s.losses && !(losses = fopen(s.losses, "w"))) {
        fprintf(stderr, "char_transformer: cannot write %s: %s\n", s.losses, strerror(errno));
        return 1;
    }
    char complaint[4400];
    eddy_error error = {0};
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = s.threads));
    bool is_fine =
        runtime && eddy_runtime_use(runtime) == EDDY_OK && eddy_seed((uint64_t)s.seed) == EDDY_OK;
    if (is_fine) {
        is_fine = text_read(s.paths, s.path_count, &text, complaint, sizeof(complaint));
        if (!is_fine)
            fprintf(stderr, "char_transformer: %s\n", complaint);
        is_fine = is_fine && run(&s, &text, losses);
    }
    text_free(&text);
    if (eddy_error_take(&error) != EDDY_OK)
        fprintf(stderr, "char_transformer: %s\n", error.message);
    eddy_runtime_use(NULL);
    eddy_runtime_release(&runtime);
    if (losses) {
        bool was_written = !ferror(losses);
        if (fclose(losses) != 0 || !was_written) {
            fprintf(stderr, "char_transformer: cannot write %s: %s\n", s.losses, strerror(errno));
            is_fine = false;
        }
    }
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "char_transformer: cannot write what is to be shown: %s\n",
                strerror(errno ? errno : ENOSPC));
        is_fine = false;
    }
    return !is_fine;
}
