/* What the fake compiler has made, kept beside the kernels for all processes: tests compile the same few hundred texts again and again. */
#ifndef EDDY_TESTS_FAKE_CUDA_KEPT_H
#define EDDY_TESTS_FAKE_CUDA_KEPT_H

#include <stddef.h>

/* One object for each text. identity: all that it depends on. The object is the caller's; NULL: none is kept, or one with another identity. */
char *fake_kept_find(const char *text, const char *identity, size_t identity_bytes, size_t *bytes);
/* In place of the one that was kept for the text. Where it cannot be written it is not kept. */
void fake_kept_add(const char *text, const char *identity, size_t identity_bytes,
                   const char *object, size_t bytes);

#endif
