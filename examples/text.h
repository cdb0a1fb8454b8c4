/* Text files as numbers, one for each distinct byte value. The last tenth of each file is held out. */
#ifndef EXAMPLES_TEXT_H
#define EXAMPLES_TEXT_H

#include <eddy/eddy.h>
#include <stdbool.h>
#include <stddef.h>

struct text {
    int64_t vocabulary;       /* distinct bytes */
    unsigned char bytes[256]; /* of each number */
    int64_t counts[2];        /* training, held out */
    eddy_tensor *numbers[2];  /* i64[count] of each */
};

/* Reads the files, or the files of a folder. On failure returns false with one sentence in `complaint`; *result still has to be
 * passed to text_free. */
bool text_read(char *const *paths, int path_count, struct text *result, char *complaint,
               size_t complaint_size);
/* A zeroed struct is allowed. */
void text_free(struct text *text);

#endif
