/* A progress bar: drawn over itself on a terminal, one line per epoch elsewhere. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool is_terminal;
    int epoch, epoch_count;
    int64_t images_done, images_all;   /* of the whole training */
    int64_t epoch_first, epoch_images; /* images before this epoch, and in it */
    double begin_s, epoch_begin_s, drawn_s;
} progress;

/* images_all: over all epochs. Writes to stdout from then on. */
void progress_init(progress *bar, int epoch_count, int64_t images_all);
void progress_epoch_begin(progress *bar, int epoch, int64_t epoch_images);
/* So many more images are done; `loss` is the latest known one. Draws at most ten times a second. */
void progress_advance(progress *bar, int64_t images, double loss);
/* The epoch's one lasting line. */
void progress_epoch_end(progress *bar, double mean_loss, double accuracy);
/* Clears the bar, so that something else can be printed. */
void progress_interrupt(const progress *bar);

#endif
