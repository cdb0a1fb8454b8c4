/* Recorded functions that are called with inputs of many sizes, compared with calls of their own. */
#ifndef TESTS_PROGRAM_SIZED_H
#define TESTS_PROGRAM_SIZED_H

#include <eddy/eddy.h>

/* The context of the function. */
typedef struct sized {
    eddy_status (*body)(void *context, eddy_recorded_call *call);
    int64_t width; /* of a row of the input, whose rows are the size */
    int calls;
    eddy_tensor *held; /* of the function's own, or NULL */
    eddy_generator *generator;
    bool takes_integers; /* i64, else f32 */
} sized;

/* Sines, row by row; of another seed they are others. */
eddy_tensor *sized_rows(int64_t count, int64_t width, int seed);
/* The input of a size. */
eddy_tensor *sized_input(const sized *f, int64_t size, int seed);

/* Up to this size all follow from those that were recorded. */
eddy_recorded *sized_record(sized *f, int64_t most);
/* One call, compared with the function's own. */
void sized_run(eddy_recorded *recorded, const sized *f, int64_t size, int seed);
/* Two of a size, two of another one, and one of a third. */
void sized_learn(eddy_recorded *recorded, const sized *f, int64_t first, int64_t second,
                 int64_t third);

/* Keys and values of all rows for the last one, as a decoder has them. */
eddy_status sized_attends(void *context, eddy_recorded_call *call);
/* From 4,096 elements on it is a group of its own accord, with reductions of rows. */
eddy_status sized_normalizes(void *context, eddy_recorded_call *call);

#endif
