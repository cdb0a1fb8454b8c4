/* Images as matrices, a tile of places at a time: the columns of elements that windows read, and the elements at the
 * places themselves. */
#ifndef EDDY_KERNELS_CPU_CONV_GATHER_H
#define EDDY_KERNELS_CPU_CONV_GATHER_H

#include <kernels/cpu/conv/conv_plan.h>

/* Places first .. first + count of a phase, in row-major order, in image `number` of a batch, and a range of its channels. */
typedef struct eddy_conv_tile {
    const eddy_conv_image *image;
    const eddy_conv_axis *rows, *columns;
    int64_t number, first, count;
    int64_t channel, channels;
} eddy_conv_tile;

/* A matrix of the compute type: [depth, places], or [places, depth] if is_last; rows are `stride` elements apart. */
typedef struct eddy_conv_matrix {
    void *data;
    int64_t stride;
    bool is_last;
} eddy_conv_matrix;

/* Whether the image is channels-last; its matrices then are too. */
bool eddy_conv_is_last(const eddy_conv_image *image);

/* The elements that the windows of the tile's places read; 0 outside the image. In a matrix with is_last, depth goes
 * through the taps and, within each tap, the channels; else through the channels and, within each channel, the taps. The
 * matrix is the image's own memory if that has this layout, else the buffer, which is gathered. */
eddy_conv_matrix eddy_conv_columns(const eddy_conv_tile *tile, eddy_dtype compute, void *buffer);

/* The image's elements at the places, in the image's memory. False if they do not form a matrix of the compute type there. */
bool eddy_conv_places(const eddy_conv_tile *tile, eddy_dtype compute, eddy_conv_matrix *matrix);
/* The buffer as a matrix for the elements at the places. eddy_conv_load fills it, eddy_conv_store copies it to the image. */
eddy_conv_matrix eddy_conv_buffer(const eddy_conv_tile *tile, void *buffer);
void eddy_conv_load(const eddy_conv_tile *tile, eddy_dtype compute, const eddy_conv_matrix *matrix);
void eddy_conv_store(const eddy_conv_tile *tile, eddy_dtype compute,
                     const eddy_conv_matrix *matrix);

#endif
