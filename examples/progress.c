#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 30
#define DRAW_EVERY_S 0.1

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_init(progress *bar, int epoch_count, int64_t images_all) {
    *bar = (progress){
        .is_terminal = isatty(STDOUT_FILENO), .epoch_count = epoch_count, .images_all = images_all, .begin_s = now_s()};
}

void progress_epoch_begin(progress *bar, int epoch, int64_t epoch_images) {
    bar->epoch = epoch;
    bar->epoch_first = bar->images_done;
    bar->epoch_images = epoch_images;
    bar->epoch_begin_s = now_s();
    bar->drawn_s = 0;
}

static void draw(const progress *bar, double loss, double now) {
    double done = (double)(bar->images_done - bar->epoch_first) / (double)bar->epoch_images;
    double rate = (double)(bar->images_done - bar->epoch_first) / (now - bar->epoch_begin_s + 1e-9);
    double overall_rate = (double)bar->images_done / (now - bar->begin_s + 1e-9);
    double left_s = (double)(bar->images_all - bar->images_done) / (overall_rate + 1e-9);
    char cells[BAR_WIDTH + 1];
    for (int i = 0; i < BAR_WIDTH; i++)
        cells[i] = i < (int)(done * BAR_WIDTH + 0.5) ? '#' : '.';
    cells[BAR_WIDTH] = 0;
    printf("\r\033[Kepoch %d/%d [%s] %3.0f %%  %.0f images/s  loss %.4f  ETA %d:%02d", bar->epoch, bar->epoch_count,
           cells, done * 100, rate, loss, (int)left_s / 60, (int)left_s % 60);
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
    printf("epoch %d/%d  loss %.4f  test accuracy %.4f  %.0f images/s  %.1f s\n", bar->epoch, bar->epoch_count,
           mean_loss, accuracy, (double)(bar->images_done - bar->epoch_first) / (seconds + 1e-9), seconds);
    fflush(stdout);
}

void progress_interrupt(const progress *bar) {
    if (bar->is_terminal) {
        printf("\r\033[K");
        fflush(stdout);
    }
}
