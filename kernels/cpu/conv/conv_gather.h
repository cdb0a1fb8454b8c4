/* Images as matrices, a tile of places at a time: the columns that windows show, and the places themselves. */
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

/* A matrix of the compute type: [depth, places], or [places, depth] where it is_last; `stride` numbers from row to row. */
typedef struct eddy_conv_matrix {
    void *data;
    int64_t stride;
    bool is_last;
} eddy_conv_matrix;

/* Whether the image lies channels-last, so that matrices of it do. */
bool eddy_conv_is_last(const eddy_conv_image *image);

/* What the windows of the tile's places show, 0 past the edges. Depth counts taps and, within, channels where the matrix
 * is_last, else channels and, within, taps. Where it lies, if it does as a matrix, else gathered into the buffer. */
eddy_conv_matrix eddy_conv_columns(const eddy_conv_tile *tile, eddy_dtype compute, void *buffer);

/* The image's elements at the places. False where they do not lie as a matrix of the compute type. */
bool eddy_conv_places(const eddy_conv_tile *tile, eddy_dtype compute, eddy_conv_matrix *matrix);
/* The buffer as a matrix of the elements at the places; loaded, and stored. */
eddy_conv_matrix eddy_conv_buffer(const eddy_conv_tile *tile, void *buffer);
void eddy_conv_load(const eddy_conv_tile *tile, eddy_dtype compute, const eddy_conv_matrix *matrix);
void eddy_conv_store(const eddy_conv_tile *tile, eddy_dtype compute,
                     const eddy_conv_matrix *matrix);

#endif
