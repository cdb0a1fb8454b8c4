/* A progress bar: on a terminal one line that is overwritten, elsewhere one line per epoch. */
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

/* images_all: number of images over all epochs. The bar writes to stdout. */
void progress_init(progress *bar, int epoch_count, int64_t images_all);
void progress_epoch_begin(progress *bar, int epoch, int64_t epoch_images);
/* `images` more images are done; `loss` is the latest known loss. Draws at most ten times a second. */
void progress_advance(progress *bar, int64_t images, double loss);
/* Prints the epoch's final line, which stays. */
void progress_epoch_end(progress *bar, double mean_loss, double accuracy);
/* Clears the bar, so that something else can be printed. */
void progress_interrupt(const progress *bar);

#endif
