/* Tensors on a device that is named, whatever the device of creation ops is. */
#ifndef EDDY_TESTS_PLACED_H
#define EDDY_TESTS_PLACED_H

#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>

/* One that is not the CPU: of the kind that EDDY_DEVICE says, if that is `cuda`, else one that the CPU simulates. */
static inline eddy_device elsewhere(int32_t index) {
    const char *made_on = getenv("EDDY_DEVICE");
    return made_on && strcmp(made_on, "cuda") == 0 ? EDDY_CUDA(index) : EDDY_FAR(index);
}

/* The text, in which each `far:` is such a device. Valid until the next but three. */
static inline const char *about_there(const char *text) {
    static char texts[4][1024];
    static int next;
    char *to = texts[next++ % 4];
    const char *name = elsewhere(0).kind == EDDY_DEVICE_CUDA ? "cuda:" : "far:";
    size_t length = 0;
    while (*text && length + 8 < sizeof(texts[0])) {
        bool is_name = strncmp(text, "far:", 4) == 0;
        size_t taken = is_name ? 4 : 1, given = is_name ? strlen(name) : 1;
        memcpy(to + length, is_name ? name : text, given);
        text += taken;
        length += given;
    }
    to[length] = '\0';
    return to;
}

/* f32[2, 3]: first, first + 1, ... */
static inline eddy_tensor *numbers_on(eddy_device device, float first) {
    float data[6];
    for (int i = 0; i < 6; i++)
        data[i] = first + (float)i;
    return eddy_from_data(data, EDDY_SHAPE(2, 3), EDDY_F32,
                          EDDY_OPTIONS(from_data, .device = device));
}

#endif
