/* What the fake compiler has made, kept beside the kernels for all processes: tests compile the same few hundred texts again and again. */
#ifndef EDDY_TESTS_FAKE_CUDA_KEPT_H
#define EDDY_TESTS_FAKE_CUDA_KEPT_H

#include <stddef.h>

/* identity: all that the object depends on. The object is the caller's; NULL: it is not kept. */
char *fake_kept_find(const char *identity, size_t identity_bytes, size_t *bytes);
/* Where it cannot be written it is not kept. */
void fake_kept_add(const char *identity, size_t identity_bytes, const char *object, size_t bytes);

#endif
