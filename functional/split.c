/* split and chunk for eddy_call: the caller's array is as long as the attribute capacity says. */
#include <functional/arguments.h>
#include <functional/composition.h>
#include <interpreter/handle/split.h>

static void clear_rest(eddy_tensor **outputs, int64_t count, int64_t capacity) {
    for (int64_t i = count; i < capacity; i++)
        outputs[i] = NULL;
}

eddy_status eddy_composition_split(eddy_list inputs, const void *arguments, eddy_tensor **outputs,
                                   eddy_origin origin) {
    const eddy_arguments_split *a = arguments;
    int64_t count = 0;
    eddy_status status = eddy_split_sized(inputs.items[0], a->size, a->axis, outputs, a->capacity,
                                          &count, origin.address);
    if (status == EDDY_OK)
        clear_rest(outputs, count, a->capacity);
    return status;
}

eddy_status eddy_composition_chunk(eddy_list inputs, const void *arguments, eddy_tensor **outputs,
                                   eddy_origin origin) {
    const eddy_arguments_chunk *a = arguments;
    int64_t count = 0;
    eddy_status status = eddy_split_chunked(inputs.items[0], a->chunks, a->axis, outputs,
                                            a->capacity, &count, origin.address);
    if (status == EDDY_OK)
        clear_rest(outputs, count, a->capacity);
    return status;
}
