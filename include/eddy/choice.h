/* Options that choose one of several ways. The first, 0, is the default. */
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

#ifdef __cplusplus
}
#endif
#endif
