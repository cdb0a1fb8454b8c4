/* Trains a network on images, batch after batch, and issues a batch without waiting for the previous one. */
#ifndef EXAMPLES_TRAINER_H
#define EXAMPLES_TRAINER_H

#include "images.h"
#include "network.h"
#include "progress.h"
#include "settings.h"
#include "turns.h"

#include <eddy/eddy.h>
#include <stdbool.h>
#include <stdio.h>

/* A loss is read this many batches after it was issued. By then it has been computed, so that the read does not block. */
#define TRAINER_WINDOW 32

struct trainer {
    const struct settings *settings;
    const struct images *images;
    network *net;
    progress *bar;
    FILE *losses;            /* or NULL */
    eddy_recorded *recorded; /* the step; NULL if steps are not replayed */
    turns turns;

    int64_t batches;    /* in an epoch */
    int64_t epoch;      /* from 0 */
    eddy_tensor *order; /* i64[count]: this epoch's order of the images */
    struct {
        eddy_tensor *loss;
        int64_t batch;        /* in the epoch */
    } window[TRAINER_WINDOW]; /* a ring of batches whose loss has not been read yet */
    int64_t window_first, window_count;
    int64_t next; /* next batch to issue */
    double loss_sum;
    int64_t loss_count;
};

/* Borrows all its arguments. After a failure *trainer still has to be passed to trainer_fini. */
bool trainer_init(struct trainer *trainer, const struct settings *settings,
                  const struct images *images, network *net, progress *bar, FILE *losses);
/* Trains on all images once, in a new random order. A batch with a bad label is reported on stderr and skipped; the network
 * is then the same as without that batch. Returns false, with the error in the thread's slot, if training cannot go on.
 * *mean_loss is NaN if there was no batch to train on. */
bool trainer_epoch(struct trainer *trainer, double *mean_loss);
/* How often the step ran and was replayed, and what that gained, to stdout; nothing if steps are not replayed. */
void trainer_explain(const struct trainer *trainer);
/* Releases the window's losses and the order; also after a failed epoch. */
void trainer_fini(struct trainer *trainer);

#endif
