#include <string.h>
#include <tests/fake_cuda/dnn/attribute.h>

#define EITHER (-1) /* FLOAT or DOUBLE */

typedef struct attribute {
    eddy_dnn_attribute number;
    eddy_dnn_type type;
    int64_t count; /* 0: there are no more */
    bool may_lack; /* else it is to be set */
    int64_t most;  /* of elements */
} attribute;

typedef struct kind {
    eddy_dnn_kind number;
    attribute attributes[FAKE_DNN_VALUES];
} kind;

/* Of so many elements; the same that may be left out; of so many or more. */
#define ONE(number, type, count)                                                                   \
    { number, type, count, false, count }
#define MAY(number, type, count)                                                                   \
    { number, type, count, true, count }
#define LIST(number, type, count)                                                                  \
    { number, type, count, false, FAKE_DNN_ELEMENTS }

#define OPERATION(kind, first)                                                                     \
    {                                                                                              \
        kind, {                                                                                    \
            ONE(first + EDDY_DNN_OPERATION_ALPHA, EITHER, 1),                                      \
                ONE(first + EDDY_DNN_OPERATION_BETA, EITHER, 1),                                   \
                ONE(first + EDDY_DNN_OPERATION_CONVOLUTION, EDDY_DNN_TYPE_DESCRIPTOR, 1),          \
                ONE(first + EDDY_DNN_OPERATION_WEIGHT, EDDY_DNN_TYPE_DESCRIPTOR, 1),               \
                ONE(first + EDDY_DNN_OPERATION_X, EDDY_DNN_TYPE_DESCRIPTOR, 1),                    \
                ONE(first + EDDY_DNN_OPERATION_Y, EDDY_DNN_TYPE_DESCRIPTOR, 1),                    \
        }                                                                                          \
    }

static const kind kinds[] = {
    {EDDY_DNN_TENSOR,
     {ONE(EDDY_DNN_TENSOR_NUMBER, EDDY_DNN_TYPE_INT64, 1),
      ONE(EDDY_DNN_TENSOR_DATA_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1),
      ONE(EDDY_DNN_TENSOR_SIZES, EDDY_DNN_TYPE_INT64, FAKE_DNN_AXES),
      ONE(EDDY_DNN_TENSOR_STRIDES, EDDY_DNN_TYPE_INT64, FAKE_DNN_AXES),
      ONE(EDDY_DNN_TENSOR_ALIGNMENT, EDDY_DNN_TYPE_INT64, 1),
      MAY(EDDY_DNN_TENSOR_IS_VIRTUAL, EDDY_DNN_TYPE_BOOL, 1),
      MAY(EDDY_DNN_TENSOR_IS_VALUE, EDDY_DNN_TYPE_BOOL, 1)}},
    {EDDY_DNN_POINTWISE,
     {ONE(EDDY_DNN_POINTWISE_MODE, EDDY_DNN_TYPE_POINTWISE, 1),
      ONE(EDDY_DNN_POINTWISE_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1),
      MAY(EDDY_DNN_POINTWISE_AXIS, EDDY_DNN_TYPE_INT64, 1)}},
    {EDDY_DNN_OF_ELEMENTS,
     {ONE(EDDY_DNN_OF_ELEMENTS_POINTWISE, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_OF_ELEMENTS_X, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_OF_ELEMENTS_Y, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      MAY(EDDY_DNN_OF_ELEMENTS_B, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      MAY(EDDY_DNN_OF_ELEMENTS_T, EDDY_DNN_TYPE_DESCRIPTOR, 1)}},
    {EDDY_DNN_MATMUL, {ONE(EDDY_DNN_MATMUL_SUMS, EDDY_DNN_TYPE_DATA_TYPE, 1)}},
    {EDDY_DNN_PRODUCT,
     {ONE(EDDY_DNN_PRODUCT_MATMUL, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_PRODUCT_A, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_PRODUCT_B, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_PRODUCT_C, EDDY_DNN_TYPE_DESCRIPTOR, 1)}},
    {EDDY_DNN_REDUCTION,
     {ONE(EDDY_DNN_REDUCTION_MODE, EDDY_DNN_TYPE_REDUCTION, 1),
      ONE(EDDY_DNN_REDUCTION_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1)}},
    {EDDY_DNN_OF_ROWS,
     {ONE(EDDY_DNN_OF_ROWS_REDUCTION, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_OF_ROWS_X, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_OF_ROWS_Y, EDDY_DNN_TYPE_DESCRIPTOR, 1)}},
    {EDDY_DNN_CONVOLUTION,
     {ONE(EDDY_DNN_CONVOLUTION_SUMS, EDDY_DNN_TYPE_DATA_TYPE, 1),
      ONE(EDDY_DNN_CONVOLUTION_MODE, EDDY_DNN_TYPE_MODE, 1),
      ONE(EDDY_DNN_CONVOLUTION_DIMS, EDDY_DNN_TYPE_INT64, 1),
      ONE(EDDY_DNN_CONVOLUTION_STRIDES, EDDY_DNN_TYPE_INT64, FAKE_DNN_DIMS),
      ONE(EDDY_DNN_CONVOLUTION_PADDINGS_AHEAD, EDDY_DNN_TYPE_INT64, FAKE_DNN_DIMS),
      ONE(EDDY_DNN_CONVOLUTION_PADDINGS_BEHIND, EDDY_DNN_TYPE_INT64, FAKE_DNN_DIMS),
      ONE(EDDY_DNN_CONVOLUTION_DILATIONS, EDDY_DNN_TYPE_INT64, FAKE_DNN_DIMS)}},
    OPERATION(EDDY_DNN_FORWARD, EDDY_DNN_FORWARD_FIRST),
    OPERATION(EDDY_DNN_BACKWARD_X, EDDY_DNN_BACKWARD_X_FIRST),
    OPERATION(EDDY_DNN_BACKWARD_WEIGHT, EDDY_DNN_BACKWARD_WEIGHT_FIRST),
    {EDDY_DNN_GRAPH,
     {ONE(EDDY_DNN_GRAPH_HANDLE, EDDY_DNN_TYPE_HANDLE, 1),
      LIST(EDDY_DNN_GRAPH_OPERATIONS, EDDY_DNN_TYPE_DESCRIPTOR, 1)}},
    {EDDY_DNN_HEURISTICS,
     {ONE(EDDY_DNN_HEURISTICS_GRAPH, EDDY_DNN_TYPE_DESCRIPTOR, 1),
      ONE(EDDY_DNN_HEURISTICS_MODE, EDDY_DNN_TYPE_HEURISTICS_MODE, 1)}},
    {EDDY_DNN_PLAN,
     {ONE(EDDY_DNN_PLAN_HANDLE, EDDY_DNN_TYPE_HANDLE, 1),
      ONE(EDDY_DNN_PLAN_ENGINE_CONFIG, EDDY_DNN_TYPE_DESCRIPTOR, 1)}},
    {EDDY_DNN_VARIANT_PACK,
     {LIST(EDDY_DNN_PACK_NUMBERS, EDDY_DNN_TYPE_INT64, FAKE_DNN_TENSORS),
      LIST(EDDY_DNN_PACK_ADDRESSES, EDDY_DNN_TYPE_ADDRESS, FAKE_DNN_TENSORS),
      ONE(EDDY_DNN_PACK_WORKSPACE, EDDY_DNN_TYPE_ADDRESS, 1)}},
    /* Of these the library sets everything. */
    {EDDY_DNN_ENGINE_CONFIG, {ONE(0, 0, 0)}},
    {EDDY_DNN_ENGINE, {ONE(0, 0, 0)}},
};

static const kind *find_kind(eddy_dnn_kind number) {
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        if (kinds[k].number == number)
            return &kinds[k];
    return NULL;
}

bool fake_dnn_kind_is(eddy_dnn_kind number) {
    return find_kind(number) != NULL;
}

/* FAKE_DNN_VALUES: the kind has none of this number. */
static int place_of(const fake_dnn_object *object, eddy_dnn_attribute number) {
    const attribute *all = find_kind(object->dnn_kind)->attributes;
    for (int place = 0; place < FAKE_DNN_VALUES && all[place].count > 0; place++)
        if (all[place].number == number)
            return place;
    return FAKE_DNN_VALUES;
}

const fake_dnn_value *fake_dnn_value_of(const fake_dnn_object *object, eddy_dnn_attribute number) {
    return &object->values[place_of(object, number)];
}

static size_t element_bytes(eddy_dnn_type type) {
    switch (type) {
    case EDDY_DNN_TYPE_INT64:
    case EDDY_DNN_TYPE_DOUBLE:
        return 8;
    case EDDY_DNN_TYPE_HANDLE:
    case EDDY_DNN_TYPE_ADDRESS:
    case EDDY_DNN_TYPE_DESCRIPTOR:
        return sizeof(void *);
    case EDDY_DNN_TYPE_BOOL:
        return sizeof(bool);
    default:
        return sizeof(int); /* of an enum, or a float */
    }
}

static bool takes(const attribute *of, eddy_dnn_type type, int64_t count) {
    bool is_type =
        of->type == type ||
        (of->type == EITHER && (type == EDDY_DNN_TYPE_FLOAT || type == EDDY_DNN_TYPE_DOUBLE));
    return is_type && count >= of->count && count <= of->most;
}

const char *fake_dnn_attribute_set(fake_dnn_object *object, eddy_dnn_attribute number,
                                   eddy_dnn_type type, int64_t count, const void *elements) {
    int place = place_of(object, number);
    if (object->is_final)
        return "is final";
    if (place == FAKE_DNN_VALUES)
        return "has no such attribute";
    if (!takes(&find_kind(object->dnn_kind)->attributes[place], type, count) || !elements)
        return "does not take such elements";
    fake_dnn_value *value = &object->values[place];
    if (value->is_set)
        return "has it already";
    size_t bytes = element_bytes(type);
    for (int64_t k = 0; k < count; k++)
        memcpy(&value->elements[k], (const char *)elements + (size_t)k * bytes, bytes);
    for (int64_t k = 0; k < count && type == EDDY_DNN_TYPE_DESCRIPTOR; k++) {
        fake_dnn_object *given = fake_dnn_object_of(value->elements[k].address, FAKE_DNN_DESCRIPTOR,
                                                    "cudnnBackendSetAttribute");
        if (!given)
            return "is given no descriptor";
        given->users++;
    }
    if (type == EDDY_DNN_TYPE_HANDLE &&
        !fake_dnn_object_of(value->elements[0].address, FAKE_DNN_CONTEXT,
                            "cudnnBackendSetAttribute"))
        return "is given no context";
    value->type = type;
    value->count = count;
    value->is_set = true;
    return NULL;
}

eddy_dnn_attribute fake_dnn_attribute_unset(const fake_dnn_object *object) {
    const kind *of = find_kind(object->dnn_kind);
    for (int k = 0; k < FAKE_DNN_VALUES && of->attributes[k].count > 0; k++)
        if (!of->attributes[k].may_lack && !object->values[k].is_set)
            return of->attributes[k].number;
    return FAKE_DNN_NONE;
}

void fake_dnn_attributes_leave(fake_dnn_object *object) {
    for (int k = 0; k < FAKE_DNN_VALUES; k++) {
        const fake_dnn_value *value = &object->values[k];
        if (!value->is_set || value->type != EDDY_DNN_TYPE_DESCRIPTOR)
            continue;
        for (int64_t e = 0; e < value->count; e++) {
            fake_dnn_object *given = fake_dnn_object_of(
                value->elements[e].address, FAKE_DNN_DESCRIPTOR, "cudnnBackendDestroyDescriptor");
            if (given)
                given->users--;
        }
    }
}
