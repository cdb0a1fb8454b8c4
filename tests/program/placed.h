/* Tensors on a device that is named, whatever the device of creation ops is. */
#ifndef EDDY_TESTS_PLACED_H
#define EDDY_TESTS_PLACED_H

#include <eddy/eddy.h>

/* f32[2, 3]: first, first + 1, ... */
static inline eddy_tensor *numbers_on(eddy_device device, float first) {
    float data[6];
    for (int i = 0; i < 6; i++)
        data[i] = first + (float)i;
    return eddy_from_data(data, EDDY_SHAPE(2, 3), EDDY_F32,
                          EDDY_OPTIONS(from_data, .device = device));
}

#endif
