#include <base/number.h>

#include <base/dtype.h>
#include <stdio.h>

/* A number stays the input of a recorded function that it was. */
static eddy_scalar with_slot(eddy_scalar number, uint32_t slot) {
    number.slot = slot;
    return number;
}

/* The number without its fraction, as an integer; false if it does not fit 64 bits. */
static bool to_integer(eddy_scalar number, int64_t *whole) {
    if (number.kind != EDDY_SCALAR_FLOAT) {
        *whole = number.value.integer;
        return true;
    }
    double value = number.value.floating;
    if (!(value >= -0x1p63 && value < 0x1p63))
        return false;
    *whole = (int64_t)value;
    return true;
}

/* The low bits of two's complement. */
static int64_t wrapped(int64_t value, eddy_dtype dtype) {
    int unused = 64 - 8 * (int)eddy_dtype_size(dtype);
    uint64_t shifted = (uint64_t)value << unused;
    return dtype == EDDY_U8 ? (int64_t)(shifted >> unused) : (int64_t)shifted >> unused;
}

static bool convert_to_integer(eddy_scalar *number, eddy_dtype dtype, bool wraps) {
    int64_t value, least, most;
    if (!to_integer(*number, &value))
        return false;
    eddy_dtype_range(dtype, &least, &most);
    if (value < least || value > most) {
        if (!wraps)
            return false;
        value = wrapped(value, dtype);
    }
    *number = with_slot(eddy_scalar_int(value), number->slot);
    return true;
}

bool eddy_number_convert(eddy_scalar *number, eddy_dtype dtype, bool wraps) {
    bool is_float = number->kind == EDDY_SCALAR_FLOAT;
    switch (eddy_dtype_category_of(dtype)) {
    case EDDY_CATEGORY_FLOAT:
        if (!is_float)
            *number =
                with_slot(eddy_scalar_float(eddy_dtype_f64_of_i64(dtype, number->value.integer)),
                          number->slot);
        return true;
    case EDDY_CATEGORY_INT:
        return convert_to_integer(number, dtype, wraps);
    case EDDY_CATEGORY_BOOL:
        break;
    }
    *number = with_slot(
        eddy_scalar_bool(is_float ? number->value.floating != 0 : number->value.integer != 0),
        number->slot);
    return true;
}

int eddy_number_format(eddy_scalar number, char *buffer, size_t size) {
    if (number.kind == EDDY_SCALAR_FLOAT)
        return snprintf(buffer, size, "%g", number.value.floating);
    return snprintf(buffer, size, "%lld", (long long)number.value.integer);
}
