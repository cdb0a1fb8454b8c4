/* Options with a choice of names. The first, 0, is the default. */
#ifndef EDDY_CHOICE_H
#define EDDY_CHOICE_H

#ifdef __cplusplus
extern "C" {
#endif

/* How the losses of the items of a batch become the result. */
typedef enum eddy_reduction {
    EDDY_REDUCTION_MEAN, /* their mean */
    EDDY_REDUCTION_SUM,  /* their sum */
    EDDY_REDUCTION_NONE, /* one per item */
} eddy_reduction;

/* Which axes of a grid the first two vectors run along. */
typedef enum eddy_indexing {
    EDDY_INDEXING_IJ, /* the first and the second, as matrices are indexed */
    EDDY_INDEXING_XY, /* the second and the first, as pictures are */
} eddy_indexing;
/* How gelu computes the normal distribution function at x. */
typedef enum eddy_approximate {
    EDDY_APPROXIMATE_NONE, /* exactly */
    EDDY_APPROXIMATE_TANH, /* by a hyperbolic tangent */
} eddy_approximate;

/* How interpolate computes the elements of the resized image. */
typedef enum eddy_mode {
    EDDY_MODE_NEAREST,  /* the nearest element to the left and above */
    EDDY_MODE_BILINEAR, /* the mean of the four around, weighted by distance */
} eddy_mode;

#ifdef __cplusplus
}
#endif
#endif
