#include "trainer.h"

#include <math.h>

#define RATE_BEGIN 1e-3
#define BAD_LABEL 200

void trainer_init(struct trainer *trainer, const struct settings *settings,
                  const struct images *images, network *net, progress *bar, FILE *losses) {
    *trainer = (struct trainer){
        .settings = settings, .images = images, .net = net, .bar = bar, .losses = losses};
    trainer->batches = (images->count + settings->batch - 1) / settings->batch;
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
    eddy_tensor *loss = network_train(trainer->net, pixels, labels, learning_rate(trainer, number));
    loss = eddy_scope_return(scope, loss);
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

bool trainer_epoch(struct trainer *trainer, double *mean_loss) {
    eddy_release(&trainer->order);
    trainer->order = eddy_randperm(trainer->images->count, EDDY_I64, NULL);
    trainer->next = 0;
    trainer->loss_sum = 0;
    trainer->loss_count = 0;
    progress_epoch_begin(trainer->bar, (int)trainer->epoch + 1, trainer->images->count);
    while (trainer->next < trainer->batches || trainer->window_count) {
        bool may_issue = trainer->next < trainer->batches && trainer->window_count < TRAINER_WINDOW;
        if (!(may_issue ? issue_next(trainer) : settle_oldest(trainer)))
            return false;
    }
    trainer->epoch++;
    *mean_loss = trainer->loss_count ? trainer->loss_sum / (double)trainer->loss_count : NAN;
    return true;
}

void trainer_fini(struct trainer *trainer) {
    while (trainer->window_count)
        drop_oldest(trainer);
    eddy_release(&trainer->order);
}
