#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 30
#define COLUMNS_UNKNOWN 80
#define DRAW_EVERY_S 0.1

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_init(progress *bar, int epoch_count, int64_t images_all) {
    *bar = (progress){.is_terminal = isatty(STDOUT_FILENO),
                      .epoch_count = epoch_count,
                      .images_all = images_all,
                      .begin_s = now_s()};
}

void progress_epoch_begin(progress *bar, int epoch, int64_t epoch_images) {
    bar->epoch = epoch;
    bar->epoch_first = bar->images_done;
    bar->epoch_images = epoch_images;
    bar->epoch_begin_s = now_s();
    bar->drawn_s = 0;
}

/* Columns that may be written. The last column stays empty: some terminals begin a new line as soon as it is written. */
static int free_columns(void) {
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (is_known ? size.ws_col : COLUMNS_UNKNOWN) - 1;
}

/* The bar fills the rest of the line beside the text. A line that wraps could not be overwritten. */
static void draw(const progress *bar, double loss, double now) {
    double done = (double)(bar->images_done - bar->epoch_first) / (double)bar->epoch_images;
    double rate = (double)(bar->images_done - bar->epoch_first) / (now - bar->epoch_begin_s + 1e-9);
    double overall_rate = (double)bar->images_done / (now - bar->begin_s + 1e-9);
    double left_s = (double)(bar->images_all - bar->images_done) / (overall_rate + 1e-9);
    char before[64], cells[BAR_WIDTH + 1], after[128], line[256];
    snprintf(before, sizeof(before), "epoch %d/%d", bar->epoch, bar->epoch_count);
    snprintf(after, sizeof(after), "%3.0f %%  %.0f images/s  loss %.4f  ETA %d:%02d", done * 100,
             rate, loss, (int)left_s / 60, (int)left_s % 60);
    int columns = free_columns(),
        width = columns - (int)(strlen(before) + strlen(" [] ") + strlen(after));
    width = width < 0 ? 0 : width > BAR_WIDTH ? BAR_WIDTH : width;
    for (int i = 0; i < width; i++)
        cells[i] = i < (int)(done * width + 0.5) ? '#' : '.';
    cells[width] = 0;
    snprintf(line, sizeof(line), "%s [%s] %s", before, cells, after);
    printf("\r\033[K%.*s", columns, line);
    fflush(stdout);
}

void progress_advance(progress *bar, int64_t images, double loss) {
    bar->images_done += images;
    double now = now_s();
    if (!bar->is_terminal || now - bar->drawn_s < DRAW_EVERY_S)
        return;
    bar->drawn_s = now;
    draw(bar, loss, now);
}

void progress_epoch_end(progress *bar, double mean_loss, double accuracy) {
    double seconds = now_s() - bar->epoch_begin_s;
    progress_interrupt(bar);
    printf("epoch %d/%d  loss %.4f  test accuracy %.4f  %.0f images/s  %.1f s\n", bar->epoch,
           bar->epoch_count, mean_loss, accuracy,
           (double)(bar->images_done - bar->epoch_first) / (seconds + 1e-9), seconds);
    fflush(stdout);
}

void progress_interrupt(const progress *bar) {
    if (bar->is_terminal) {
        printf("\r\033[K");
        fflush(stdout);
    }
}
