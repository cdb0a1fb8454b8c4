/* Compiling the text of a kernel for devices of a capability (90 is 9.0), by NVRTC. Its library is opened by the first call. One thread at a time. */
#ifndef EDDY_STREAMS_CUDA_COMPILER_H
#define EDDY_STREAMS_CUDA_COMPILER_H

#include <base/assert.h>
#include <eddy/status.h>
#include <stddef.h>
#include <stdint.h>

/* What an image depends on beside the text, as a text: the compiler, the architecture, the options. UNSUPPORTED, with a sentence in `why`: there is no compiler. */
EDDY_MUST_USE eddy_status eddy_cuda_compiler_describe(int capability, char *text, size_t size,
                                                      char *why, size_t why_size);
/* Makes an image that the driver of such a device loads, acquired with EDDY_MEMORY_CACHE. Takes from a tenth of a second on. After an OK of the above. UNSUPPORTED (the compiler finds fault with the text),
 * OUT_OF_MEMORY, INTERNAL, with a sentence in `why`. */
EDDY_MUST_USE eddy_status eddy_cuda_compile(int capability, const char *source, void **image,
                                            size_t *bytes, char *why, size_t why_size);

#endif
