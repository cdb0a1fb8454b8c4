/* Trains a network on images, batch after batch, without waiting for one before the next is issued. */
#ifndef EXAMPLES_TRAINER_H
#define EXAMPLES_TRAINER_H

#include "images.h"
#include "network.h"
#include "progress.h"
#include "settings.h"

#include <eddy/eddy.h>
#include <stdbool.h>
#include <stdio.h>

/* Losses are read so many batches late: by then they are there, and reading them does not hold up the next batch. */
#define TRAINER_WINDOW 32

struct trainer {
    const struct settings *settings;
    const struct images *images;
    network *net;
    progress *bar;
    FILE *losses; /* or NULL */

    int64_t batches;    /* in an epoch */
    int64_t epoch;      /* from 0 */
    eddy_tensor *order; /* i64[count]: this epoch's order of the images */
    struct {
        eddy_tensor *loss;
        int64_t batch;        /* in the epoch */
    } window[TRAINER_WINDOW]; /* a ring: issued, loss not yet read */
    int64_t window_first, window_count;
    int64_t next; /* batch to issue */
    double loss_sum;
    int64_t loss_count;
};

/* Borrows all it is given. */
void trainer_init(struct trainer *trainer, const struct settings *settings,
                  const struct images *images, network *net, progress *bar, FILE *losses);
/* Goes once through the images in a new random order. A batch with a bad label is reported on stderr and skipped, and
 * the network is as if it had not been there. Returns false, with the record in the thread's error slot, where training
 * cannot go on. *mean_loss is NaN when no batch was left. */
bool trainer_epoch(struct trainer *trainer, double *mean_loss);
/* Releases what a failed epoch left. */
void trainer_fini(struct trainer *trainer);

#endif
