/* What the normalisations of all devices share, so that they have the same bits: what is summed in which order, and how parts of a place are joined. For CUDA
 * sources too.
 *
 * A place is summed in chunks, a chunk in lanes that are then halved; chunks are joined in order. */
#ifndef EDDY_KERNELS_NORM_H
#define EDDY_KERNELS_NORM_H

#include <base/builtin.h>

#define EDDY_NORM_LANES 16
#define EDDY_NORM_CHUNK 2048

/* Of a part of a place. Without a mean, of rms_norm, that is 0. */
typedef struct eddy_norm_sums {
    double mean, squares; /* squares of the distances from the mean */
    double sum,
        product; /* for the gradient of x: of grad * weight, and of that times the distance from the mean */
} eddy_norm_sums;

/* Of the parts so far. */
typedef struct eddy_norm_total {
    eddy_norm_sums sums; /* each part's `product` is of distances from its own mean */
    double first;        /* the mean of the first part */
    double correction;   /* what `product` lacks for distances from that one */
} eddy_norm_total;

/* Joins `count` elements to the `begin` before them (T. Chan, G. Golub, R. LeVeque, 1979). The first part is the total as it is: what the formula adds to it
 * is 0, or NaN where it overflows. */
EDDY_SCALAR void eddy_norm_join(eddy_norm_total *total, int64_t begin, const eddy_norm_sums *part,
                                int64_t count) {
    eddy_norm_sums *sums = &total->sums;
    if (begin == 0) {
        *sums = *part;
        total->first = part->mean;
        total->correction = 0;
        return;
    }
    double share = (double)count / (double)(begin + count), distance = part->mean - sums->mean;
    sums->squares += part->squares + distance * distance * share * (double)begin;
    sums->mean += distance * share;
    sums->sum += part->sum;
    sums->product += part->product;
    total->correction += (part->mean - total->first) * part->sum;
}

/* `product` with distances from the mean of the whole place, which has `count` elements. */
EDDY_SCALAR double eddy_norm_product(const eddy_norm_total *total, bool is_centred, int64_t count) {
    const eddy_norm_sums *sums = &total->sums;
    if (!is_centred || count <= EDDY_NORM_CHUNK)
        return sums->product;
    return sums->product + (total->correction - (sums->mean - total->first) * sums->sum);
}

#endif
