#include <functional/door.h>

#include <base/memory.h>
#include <base/status.h>
#include <string.h>

eddy_status eddy_door_axes(const eddy_axes *axes, uint32_t *mask, const char *op, const void *address) {
    uint32_t bits = 0;
    int32_t count = axes ? axes->count : 0;
    if (count < 0 || count > EDDY_RANK_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, op, address, "%s: %d axes are named, %d are possible", op, (int)count,
                         EDDY_RANK_MAX);
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = axes->axes[i];
        if (axis < -EDDY_RANK_MAX || axis >= EDDY_RANK_MAX)
            return eddy_fail(EDDY_OUT_OF_RANGE, op, address, "%s: axis %d is out of range", op, (int)axis);
        uint32_t bit = 1u << (axis >= 0 ? axis : 15 - axis);
        if (bits & bit)
            return eddy_fail(EDDY_INVALID_ARGUMENT, op, address, "%s: axis %d is named twice", op, (int)axis);
        bits |= bit;
    }
    *mask = bits;
    return EDDY_OK;
}

eddy_status eddy_door_axis_list(const eddy_axes *axes, eddy_shape *list, const char *op, const void *address) {
    int32_t count = axes ? axes->count : 0;
    if (count < 0 || count > EDDY_RANK_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, op, address, "%s: %d axes are named, %d are possible", op, (int)count,
                         EDDY_RANK_MAX);
    list->rank = count;
    for (int32_t i = 0; i < count; i++)
        list->dims[i] = axes->axes[i];
    return EDDY_OK;
}

eddy_status eddy_door_choice(int32_t choice, int32_t count, const char *op, const char *attribute,
                             const void *address) {
    if (choice >= 0 && choice < count)
        return EDDY_OK;
    return eddy_fail(EDDY_INVALID_ARGUMENT, op, address, "%s: %s has no choice %d", op, attribute, (int)choice);
}

eddy_status eddy_joined_init(eddy_joined *joined, const eddy_list *pieces, int32_t piece_count, const char *op,
                             const void *address) {
    int64_t count = 0;
    for (int32_t i = 0; i < piece_count; i++) {
        if (pieces[i].count < 0 || pieces[i].count > INT32_MAX - count || (pieces[i].count > 0 && !pieces[i].items))
            return eddy_fail(EDDY_INVALID_ARGUMENT, op, address, "%s: list %d is no list of tensors", op, (int)i);
        count += pieces[i].count;
    }
    joined->memory = NULL;
    eddy_tensor **items = joined->on_stack;
    if (count > EDDY_JOINED_STACK) {
        items = joined->memory = eddy_memory_acquire((size_t)count * sizeof(*items), EDDY_MEMORY_ARGUMENT);
        if (!items)
            return eddy_fail(EDDY_OUT_OF_MEMORY, op, address, "%s: no memory for %lld operands", op, (long long)count);
    }
    joined->items = items;
    joined->count = count;
    for (int32_t i = 0; i < piece_count; i++) {
        if (pieces[i].count > 0)
            memcpy(items, pieces[i].items, (size_t)pieces[i].count * sizeof(*items));
        items += pieces[i].count;
    }
    return EDDY_OK;
}

void eddy_joined_fini(eddy_joined *joined) {
    if (joined->memory)
        eddy_memory_release(joined->memory, (size_t)joined->count * sizeof(*joined->memory), EDDY_MEMORY_ARGUMENT);
}
