/* Text files as numbers: one for each different byte, the last tenth of each file held out. */
#ifndef EXAMPLES_TEXT_H
#define EXAMPLES_TEXT_H

#include <eddy/eddy.h>
#include <stdbool.h>
#include <stddef.h>

struct text {
    int64_t vocabulary;       /* different bytes */
    unsigned char bytes[256]; /* of each number */
    int64_t counts[2];        /* training, held out */
    eddy_tensor *numbers[2];  /* i64[count] of each */
};

/* Reads the files, or the files of a folder. On failure returns false with one sentence in `complaint`; *result is then to be
 * given to text_free all the same. */
bool text_read(char *const *paths, int path_count, struct text *result, char *complaint,
               size_t complaint_size);
/* A zeroed struct is allowed. */
void text_free(struct text *text);

#endif
