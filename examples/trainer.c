#include "trainer.h"

#include <math.h>

#define RATE_BEGIN 1e-3
#define BAD_LABEL 200

/* The step as a function that can be recorded: inputs are pixels and labels, the number is the rate, the output is the loss. */
static eddy_status train_step(void *context, eddy_recorded_call *call) {
    call->outputs[0] =
        network_train(context, call->inputs.items[0], call->inputs.items[1], call->scalars[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

bool trainer_init(struct trainer *trainer, const struct settings *settings,
                  const struct images *images, network *net, progress *bar, FILE *losses) {
    *trainer = (struct trainer){
        .settings = settings, .images = images, .net = net, .bar = bar, .losses = losses};
    trainer->batches = (images->count + settings->batch - 1) / settings->batch;
    turns_init(&trainer->turns);
    if (settings->is_replayed)
        trainer->recorded = eddy_recorded_create(train_step, net, 1, NULL);
    return trainer->recorded || !settings->is_replayed;
}

static int64_t batch_size(const struct trainer *trainer, int64_t batch) {
    int64_t left = trainer->images->count - batch * trainer->settings->batch;
    return left < trainer->settings->batch ? left : trainer->settings->batch;
}

/* A batch's number, counted over all epochs. */
static int64_t number_of(const struct trainer *trainer, int64_t batch) {
    return trainer->epoch * trainer->batches + batch;
}

/* Falls from RATE_BEGIN to 0 along half a cosine over the whole training. */
static double learning_rate(const struct trainer *trainer, int64_t number) {
    double done = (double)number / (double)(trainer->batches * trainer->settings->epochs);
    return RATE_BEGIN * 0.5 * (1 + cos(M_PI * done));
}

/* A copy of the labels whose last one is out of range. */
static eddy_tensor *damaged(eddy_tensor *labels, int64_t count) {
    eddy_tensor *bad = eddy_full(EDDY_SHAPE(1), EDDY_S(BAD_LABEL), EDDY_I64, NULL);
    return eddy_cat(EDDY_LIST(eddy_narrow(labels, 0, 0, count - 1), bad), 0);
}

/* One step by calls, or as a replay of them: the numbers are the same. */
static eddy_tensor *train(struct trainer *trainer, eddy_tensor *pixels, eddy_tensor *labels,
                          int64_t number) {
    eddy_scalar rate = EDDY_S(learning_rate(trainer, number));
    eddy_tensor *loss = NULL;
    /* For those who look at a trace. */
    eddy_range_push("step");
    if (!trainer->recorded || !turns_is_replayed(number))
        loss = network_train(trainer->net, pixels, labels, rate);
    else
        (void)eddy_recorded_run(trainer->recorded, EDDY_LIST(pixels, labels), EDDY_SCALARS(rate),
                                &loss);
    eddy_range_pop();
    turns_count(&trainer->turns, number);
    return loss;
}

/* Issues the next batch and puts its loss into the window. */
static bool issue_next(struct trainer *trainer) {
    int64_t batch = trainer->next++, number = number_of(trainer, batch),
            count = batch_size(trainer, batch);
    if (number == trainer->settings->leave_out_batch) {
        progress_advance(trainer->bar, count, NAN);
        return true;
    }
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *chosen = eddy_narrow(trainer->order, 0, batch * trainer->settings->batch, count);
    eddy_tensor *pixels = eddy_index_select(trainer->images->pixels, chosen, 0);
    eddy_tensor *labels = eddy_index_select(trainer->images->labels, chosen, 0);
    if (number == trainer->settings->damage_batch)
        labels = damaged(labels, count);
    eddy_tensor *loss = eddy_scope_return(scope, train(trainer, pixels, labels, number));
    eddy_scope_end(scope);
    if (!loss)
        return false;
    int64_t place = (trainer->window_first + trainer->window_count++) % TRAINER_WINDOW;
    trainer->window[place].loss = loss;
    trainer->window[place].batch = batch;
    return true;
}

static void drop_oldest(struct trainer *trainer) {
    eddy_release(&trainer->window[trainer->window_first].loss);
    trainer->window_first = (trainer->window_first + 1) % TRAINER_WINDOW;
    trainer->window_count--;
}

/* Called when the oldest batch of the window has failed: it and all batches issued after it changed nothing. Reports it, and
 * continues with the next batch. Returns false if the reason is not a bad label. */
static bool skip_failed(struct trainer *trainer) {
    int64_t batch = trainer->window[trainer->window_first].batch;
    eddy_error error = {0};
    /* eddy_recover requires that the errors have been seen. The loss and the gradients have one each. */
    if (eddy_error_of(trainer->window[trainer->window_first].loss, EDDY_FOREVER, &error) !=
        EDDY_OUT_OF_RANGE)
        return false;
    eddy_error_take(NULL);
    if (eddy_sync(EDDY_FOREVER) != EDDY_OK)
        eddy_error_take(NULL);
    progress_interrupt(trainer->bar);
    fprintf(stderr, "batch %lld skipped: %s\n", (long long)number_of(trainer, batch),
            error.message);
    while (trainer->window_count)
        drop_oldest(trainer);
    trainer->next = batch + 1;
    progress_advance(trainer->bar, batch_size(trainer, batch), NAN);
    return network_recover(trainer->net);
}

/* Reads the oldest loss of the window. */
static bool settle_oldest(struct trainer *trainer) {
    double loss;
    if (eddy_read_f64(trainer->window[trainer->window_first].loss, &loss, NULL) != EDDY_OK)
        return skip_failed(trainer);
    if (trainer->losses)
        fprintf(trainer->losses, "%a\n", loss);
    trainer->loss_sum += loss;
    trainer->loss_count++;
    progress_advance(trainer->bar,
                     batch_size(trainer, trainer->window[trainer->window_first].batch), loss);
    drop_oldest(trainer);
    return true;
}

/* Whether the next batch may be issued now: a block of steps that is timed begins when all before it has ended. */
static bool may_issue(struct trainer *trainer) {
    if (trainer->next == trainer->batches || trainer->window_count == TRAINER_WINDOW)
        return false;
    int64_t number = number_of(trainer, trainer->next);
    if (!trainer->recorded || !turns_is_due(&trainer->turns, number))
        return true;
    if (trainer->window_count > 0 || eddy_sync(EDDY_FOREVER) != EDDY_OK)
        return false;
    turns_begin(&trainer->turns, number);
    return true;
}

bool trainer_epoch(struct trainer *trainer, double *mean_loss) {
    eddy_release(&trainer->order);
    trainer->order = eddy_randperm(trainer->images->count, EDDY_I64, NULL);
    trainer->next = 0;
    trainer->loss_sum = 0;
    trainer->loss_count = 0;
    progress_epoch_begin(trainer->bar, (int)trainer->epoch + 1, trainer->images->count);
    while (trainer->next < trainer->batches || trainer->window_count) {
        bool is_fine = may_issue(trainer)          ? issue_next(trainer)
                       : trainer->window_count > 0 ? settle_oldest(trainer)
                                                   : false;
        if (!is_fine)
            return false;
    }
    turns_pause(&trainer->turns);
    trainer->epoch++;
    *mean_loss = trainer->loss_count ? trainer->loss_sum / (double)trainer->loss_count : NAN;
    return true;
}

void trainer_explain(const struct trainer *trainer) {
    char text[1024];
    if (!trainer->recorded || eddy_recorded_explain(trainer->recorded, text, sizeof(text)) < 0)
        return;
    printf("%s", text);
    turns_print(&trainer->turns);
}

void trainer_fini(struct trainer *trainer) {
    while (trainer->window_count)
        drop_oldest(trainer);
    eddy_release(&trainer->order);
    eddy_recorded_release(&trainer->recorded);
}
