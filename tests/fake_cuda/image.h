/* What the fake NVRTC makes and the fake driver loads: a head, and a shared object for the host. Any other image has none of its own (module.h). */
#ifndef EDDY_TESTS_FAKE_CUDA_IMAGE_H
#define EDDY_TESTS_FAKE_CUDA_IMAGE_H

#include <stdint.h>

#define FAKE_IMAGE_MAGIC "fake cuda image"

typedef struct fake_image {
    char magic[16];
    uint64_t bytes;       /* of the object behind it */
    int32_t architecture; /* 90; of a text for the driver's compiler the least */
    int32_t is_text;
} fake_image;

#endif
