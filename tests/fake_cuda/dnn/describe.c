/* Entries that make contexts and descriptors, set what they are about, and make them final. */
#include <base/atomic.h>
#include <stdlib.h>
#include <tests/fake_cuda/dnn/attribute.h>
#include <tests/fake_cuda/dnn/fault.h>
#include <tests/fake_cuda/entries.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/option.h>
#include <time.h>

size_t cudnnGetVersion(void) {
    (void)fake_dnn_fault(FAKE_cudnnGetVersion);
    return (size_t)fake_options_read()->dnn_version;
}

/* ---- contexts: the library's kernels on a device, whose context is the thread's ---- */

static eddy_dnn_status fill_context(eddy_cu_module module, eddy_dnn_context *handle) {
    eddy_cu_function convolve, compute;
    void *made;
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnCreate);
    if (status)
        return status;
    if (cuModuleGetFunction(&convolve, module, "fake_dnn_convolve") != 0 ||
        cuModuleGetFunction(&compute, module, "fake_dnn_compute") != 0)
        return EDDY_DNN_NOT_INITIALIZED;
    pthread_mutex_lock(&fake_dnn_lock);
    fake_dnn_object *object = fake_dnn_object_create(FAKE_DNN_CONTEXT, &made);
    if (object) {
        object->module = module;
        object->convolve = convolve;
        object->compute = compute;
        *handle = made;
    }
    pthread_mutex_unlock(&fake_dnn_lock);
    return object ? 0 : EDDY_DNN_HOST_ALLOC_FAILED;
}

eddy_dnn_status cudnnCreate(eddy_dnn_context *handle) {
    static const unsigned char image[1];
    eddy_cu_module module;
    if (cuModuleLoadData(&module, image) != 0)
        return EDDY_DNN_NOT_INITIALIZED;
    eddy_dnn_status status = fill_context(module, handle);
    if (status)
        (void)cuModuleUnload(module);
    return status;
}

/* The driver says if kernels of it may still run. */
eddy_dnn_status cudnnDestroy(eddy_dnn_context handle) {
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnDestroy);
    eddy_cu_module module = NULL;
    pthread_mutex_lock(&fake_dnn_lock);
    fake_dnn_object *object = fake_dnn_object_of(handle, FAKE_DNN_CONTEXT, "cudnnDestroy");
    if (object) {
        module = object->module;
        fake_dnn_object_destroy(object);
    }
    pthread_mutex_unlock(&fake_dnn_lock);
    if (module)
        (void)cuModuleUnload(module);
    return object ? status : EDDY_DNN_BAD_PARAM;
}

eddy_dnn_status cudnnSetStream(eddy_dnn_context handle, eddy_cu_stream stream) {
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnSetStream);
    if (status)
        return status;
    pthread_mutex_lock(&fake_dnn_lock);
    fake_dnn_object *object = fake_dnn_object_of(handle, FAKE_DNN_CONTEXT, "cudnnSetStream");
    if (object)
        object->stream = stream;
    pthread_mutex_unlock(&fake_dnn_lock);
    return object ? 0 : EDDY_DNN_BAD_PARAM;
}

/* ---- descriptors ---- */

eddy_dnn_status cudnnBackendCreateDescriptor(eddy_dnn_kind kind, eddy_dnn_descriptor *handle) {
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnBackendCreateDescriptor);
    if (status)
        return status;
    if (!fake_dnn_kind_is(kind)) {
        fake_finding("descriptor: there is no kind %d", kind);
        return EDDY_DNN_BAD_PARAM;
    }
    pthread_mutex_lock(&fake_dnn_lock);
    fake_dnn_object *object = fake_dnn_object_create(FAKE_DNN_DESCRIPTOR, handle);
    if (object)
        object->dnn_kind = kind;
    pthread_mutex_unlock(&fake_dnn_lock);
    return object ? 0 : EDDY_DNN_HOST_ALLOC_FAILED;
}

eddy_dnn_status cudnnBackendDestroyDescriptor(eddy_dnn_descriptor handle) {
    static const char name[] = "cudnnBackendDestroyDescriptor";
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnBackendDestroyDescriptor);
    pthread_mutex_lock(&fake_dnn_lock);
    fake_dnn_object *object = fake_dnn_object_of(handle, FAKE_DNN_DESCRIPTOR, name);
    if (object) {
        if (object->users > 0)
            fake_finding("descriptor: %s ends one of kind %d that others are made of", name,
                         object->dnn_kind);
        fake_dnn_attributes_leave(object);
        fake_dnn_object_destroy(object);
    }
    pthread_mutex_unlock(&fake_dnn_lock);
    return object ? status : EDDY_DNN_BAD_PARAM;
}

eddy_dnn_status cudnnBackendSetAttribute(eddy_dnn_descriptor handle, eddy_dnn_attribute attribute,
                                         eddy_dnn_type type, int64_t count, const void *elements) {
    static const char name[] = "cudnnBackendSetAttribute";
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnBackendSetAttribute);
    if (status)
        return status;
    pthread_mutex_lock(&fake_dnn_lock);
    fake_dnn_object *object = fake_dnn_object_of(handle, FAKE_DNN_DESCRIPTOR, name);
    const char *wrong =
        object ? fake_dnn_attribute_set(object, attribute, type, count, elements) : "is none";
    if (wrong)
        fake_finding("attribute: %d, %lld elements of type %d: the descriptor %s", attribute,
                     (long long)count, type, wrong);
    pthread_mutex_unlock(&fake_dnn_lock);
    return wrong ? EDDY_DNN_BAD_PARAM : 0;
}

/* ---- making final: what it is about ---- */

static const fake_dnn_element *elements_of(const fake_dnn_object *object,
                                           eddy_dnn_attribute attribute) {
    return fake_dnn_value_of(object, attribute)->elements;
}

/* NULL, and a finding: what it was given is not final, or of another kind. */
static const fake_dnn_object *given_of(const fake_dnn_object *object, eddy_dnn_attribute attribute,
                                       eddy_dnn_kind kind) {
    return fake_dnn_final_of(elements_of(object, attribute)->address, kind, "cudnnBackendFinalize");
}

static void read_tensor(fake_dnn_question *question, int k, const fake_dnn_object *tensor) {
    fake_dnn_tensor *to = &question->shape.tensors[k];
    for (int d = 0; d < FAKE_DNN_AXES; d++) {
        to->sizes[d] = elements_of(tensor, EDDY_DNN_TENSOR_SIZES)[d].integer;
        to->strides[d] = elements_of(tensor, EDDY_DNN_TENSOR_STRIDES)[d].integer;
    }
    question->types[k] = elements_of(tensor, EDDY_DNN_TENSOR_DATA_TYPE)->number;
    question->numbers[k] = elements_of(tensor, EDDY_DNN_TENSOR_NUMBER)->integer;
    question->alignments[k] = elements_of(tensor, EDDY_DNN_TENSOR_ALIGNMENT)->integer;
}

static void read_window(fake_dnn_question *question, const fake_dnn_object *window) {
    fake_dnn_shape *to = &question->shape;
    question->sums = elements_of(window, EDDY_DNN_CONVOLUTION_SUMS)->number;
    for (int d = 0; d < FAKE_DNN_DIMS; d++) {
        to->stride[d] = elements_of(window, EDDY_DNN_CONVOLUTION_STRIDES)[d].integer;
        to->padding[d] = elements_of(window, EDDY_DNN_CONVOLUTION_PADDINGS_AHEAD)[d].integer;
        question->behind[d] = elements_of(window, EDDY_DNN_CONVOLUTION_PADDINGS_BEHIND)[d].integer;
        to->dilation[d] = elements_of(window, EDDY_DNN_CONVOLUTION_DILATIONS)[d].integer;
    }
    if (elements_of(window, EDDY_DNN_CONVOLUTION_MODE)->number != EDDY_DNN_CROSS_CORRELATION ||
        elements_of(window, EDDY_DNN_CONVOLUTION_DIMS)->integer != FAKE_DNN_DIMS)
        fake_finding("convolution: the window is turned, or not of two dims");
}

/* NULL: no memory. Zeroed. */
static fake_dnn_question *ask(fake_dnn_object *object) {
    free(object->question);
    return object->question = calloc(1, sizeof(*object->question));
}

static double scale_of(const fake_dnn_object *operation, eddy_dnn_attribute attribute) {
    const fake_dnn_value *value = fake_dnn_value_of(operation, attribute);
    return value->type == EDDY_DNN_TYPE_DOUBLE ? value->elements->f64
                                               : (double)value->elements->f32;
}

static bool read_operation(fake_dnn_object *operation, int way, eddy_dnn_attribute first) {
    fake_dnn_question *question = ask(operation);
    const fake_dnn_object
        *tensors[] = {given_of(operation, first + EDDY_DNN_OPERATION_X, EDDY_DNN_TENSOR),
                      given_of(operation, first + EDDY_DNN_OPERATION_WEIGHT, EDDY_DNN_TENSOR),
                      given_of(operation, first + EDDY_DNN_OPERATION_Y, EDDY_DNN_TENSOR)},
        *window = given_of(operation, first + EDDY_DNN_OPERATION_CONVOLUTION, EDDY_DNN_CONVOLUTION);
    if (!question || !window || !tensors[0] || !tensors[1] || !tensors[2])
        return false;
    for (int k = 0; k < FAKE_DNN_TENSORS; k++)
        read_tensor(question, k, tensors[k]);
    read_window(question, window);
    question->shape.type = question->types[0];
    question->shape.way = way;
    question->shape.alpha = scale_of(operation, first + EDDY_DNN_OPERATION_ALPHA);
    question->shape.beta = scale_of(operation, first + EDDY_DNN_OPERATION_BETA);
    question->scale = fake_dnn_value_of(operation, first + EDDY_DNN_OPERATION_ALPHA)->type;
    const char *wrong = fake_dnn_question_misfit(question);
    if (wrong)
        fake_finding("convolution: cudnnBackendFinalize refuses %s", wrong);
    return !wrong;
}

/* Takes over what another one is about. */
static bool read_given(fake_dnn_object *object, eddy_dnn_attribute attribute, eddy_dnn_kind kind) {
    const fake_dnn_object *given = given_of(object, attribute, kind);
    if (!given || !ask(object))
        return false;
    *object->question = *given->question;
    object->engine = given->engine;
    return true;
}

/* A graph while it is read: which descriptor each of its tensors is. */
typedef struct reader {
    fake_dnn_question *question;
    const fake_dnn_object *tensors[FAKE_DNN_GRAPH_TENSORS];
    const char *wrong; /* NULL: nothing so far */
} reader;

static bool is_set(const fake_dnn_object *object, eddy_dnn_attribute attribute) {
    return fake_dnn_value_of(object, attribute)->is_set;
}

static void add_tensor(reader *to, const fake_dnn_object *from) {
    fake_dnn_question *question = to->question;
    int number = question->graph.tensor_count++;
    fake_dnn_graph_tensor *tensor = &question->graph.tensors[number];
    to->tensors[number] = from;
    for (int d = 0; d < FAKE_DNN_AXES; d++) {
        tensor->is.sizes[d] = elements_of(from, EDDY_DNN_TENSOR_SIZES)[d].integer;
        tensor->is.strides[d] = elements_of(from, EDDY_DNN_TENSOR_STRIDES)[d].integer;
    }
    tensor->type = elements_of(from, EDDY_DNN_TENSOR_DATA_TYPE)->number;
    tensor->place = is_set(from, EDDY_DNN_TENSOR_IS_VIRTUAL) ? FAKE_DNN_NOWHERE
                    : is_set(from, EDDY_DNN_TENSOR_IS_VALUE) ? FAKE_DNN_BY_VALUE
                                                             : FAKE_DNN_IN_MEMORY;
    question->graph_numbers[number] = elements_of(from, EDDY_DNN_TENSOR_NUMBER)->integer;
    question->graph_alignments[number] = elements_of(from, EDDY_DNN_TENSOR_ALIGNMENT)->integer;
    for (int other = 0; other < number; other++)
        if (question->graph_numbers[other] == question->graph_numbers[number])
            to->wrong = "two tensors of one number";
}

/* Its place in the list; -1: there is none. */
static int32_t tensor_of(reader *to, const fake_dnn_object *operation,
                         eddy_dnn_attribute attribute) {
    if (!is_set(operation, attribute))
        return -1;
    const fake_dnn_object *tensor = given_of(operation, attribute, EDDY_DNN_TENSOR);
    if (!tensor || to->question->graph.tensor_count == FAKE_DNN_GRAPH_TENSORS) {
        to->wrong = "what is no tensor, or too many of them";
        return -1;
    }
    for (int32_t t = 0; t < to->question->graph.tensor_count; t++)
        if (to->tensors[t] == tensor)
            return t;
    add_tensor(to, tensor);
    return to->question->graph.tensor_count - 1;
}

/* What is done, of the descriptor that says it. */
static int mode_of_given(reader *to, const fake_dnn_object *given, eddy_dnn_attribute mode,
                         eddy_dnn_attribute type, int computed) {
    if (!given || elements_of(given, type)->number != computed) {
        to->wrong = "what is to be done, or its type";
        return -1;
    }
    return elements_of(given, mode)->number;
}

static void read_elements(reader *to, const fake_dnn_object *from, fake_dnn_graph_operation *o) {
    const fake_dnn_object *pointwise =
        given_of(from, EDDY_DNN_OF_ELEMENTS_POINTWISE, EDDY_DNN_POINTWISE);
    if (!pointwise) {
        to->wrong = "nothing that is to be done";
        return;
    }
    o->kind = FAKE_DNN_OF_ELEMENTS;
    o->mode = elements_of(pointwise, EDDY_DNN_POINTWISE_MODE)->number;
    o->axis = is_set(pointwise, EDDY_DNN_POINTWISE_AXIS)
                  ? (int32_t)elements_of(pointwise, EDDY_DNN_POINTWISE_AXIS)->integer
                  : -1;
    o->inputs[0] = tensor_of(to, from, EDDY_DNN_OF_ELEMENTS_X);
    o->inputs[1] = tensor_of(to, from, EDDY_DNN_OF_ELEMENTS_B);
    o->inputs[2] = tensor_of(to, from, EDDY_DNN_OF_ELEMENTS_T);
    o->output = tensor_of(to, from, EDDY_DNN_OF_ELEMENTS_Y);
    int wanted = o->mode == EDDY_DNN_INDEX ? EDDY_DNN_I32
                 : o->mode == EDDY_DNN_GE  ? EDDY_DNN_BOOL
                                           : EDDY_DNN_F32;
    (void)mode_of_given(to, pointwise, EDDY_DNN_POINTWISE_MODE, EDDY_DNN_POINTWISE_TYPE, wanted);
}

static void read_product(reader *to, const fake_dnn_object *from, fake_dnn_graph_operation *o) {
    o->kind = FAKE_DNN_OF_MATRICES;
    o->inputs[0] = tensor_of(to, from, EDDY_DNN_PRODUCT_A);
    o->inputs[1] = tensor_of(to, from, EDDY_DNN_PRODUCT_B);
    o->inputs[2] = -1;
    o->output = tensor_of(to, from, EDDY_DNN_PRODUCT_C);
    (void)mode_of_given(to, given_of(from, EDDY_DNN_PRODUCT_MATMUL, EDDY_DNN_MATMUL),
                        EDDY_DNN_MATMUL_SUMS, EDDY_DNN_MATMUL_SUMS, EDDY_DNN_F32);
}

static void read_rows(reader *to, const fake_dnn_object *from, fake_dnn_graph_operation *o) {
    o->kind = FAKE_DNN_OF_ROWS;
    o->inputs[0] = tensor_of(to, from, EDDY_DNN_OF_ROWS_X);
    o->inputs[1] = o->inputs[2] = -1;
    o->output = tensor_of(to, from, EDDY_DNN_OF_ROWS_Y);
    o->mode = mode_of_given(to, given_of(from, EDDY_DNN_OF_ROWS_REDUCTION, EDDY_DNN_REDUCTION),
                            EDDY_DNN_REDUCTION_MODE, EDDY_DNN_REDUCTION_TYPE, EDDY_DNN_F32);
}

static void read_one(reader *to, const fake_dnn_object *operation) {
    fake_dnn_graph *graph = &to->question->graph;
    if (!operation || !operation->is_final || graph->operation_count == FAKE_DNN_GRAPH_OPERATIONS) {
        to->wrong = "an operation that is none";
        return;
    }
    fake_dnn_graph_operation *o = &graph->operations[graph->operation_count++];
    switch (operation->dnn_kind) {
    case EDDY_DNN_OF_ELEMENTS:
        read_elements(to, operation, o);
        break;
    case EDDY_DNN_PRODUCT:
        read_product(to, operation, o);
        break;
    case EDDY_DNN_OF_ROWS:
        read_rows(to, operation, o);
        break;
    default:
        to->wrong = "an operation of another kind beside others";
    }
}

static bool read_operations(fake_dnn_object *graph) {
    const fake_dnn_value *operations = fake_dnn_value_of(graph, EDDY_DNN_GRAPH_OPERATIONS);
    reader to = {.question = ask(graph)};
    if (!to.question)
        return false;
    to.question->is_graph = true;
    for (int64_t k = 0; k < operations->count && !to.wrong; k++)
        read_one(&to, fake_dnn_object_of(operations->elements[k].address, FAKE_DNN_DESCRIPTOR,
                                         "cudnnBackendFinalize"));
    if (!to.wrong)
        to.wrong = fake_dnn_graph_misfit(&to.question->graph);
    if (to.wrong)
        fake_finding("graph: cudnnBackendFinalize refuses %s", to.wrong);
    return !to.wrong;
}

/* A convolution stands alone. */
static bool read_graph(fake_dnn_object *graph) {
    static const eddy_dnn_kind alone[] = {EDDY_DNN_FORWARD, EDDY_DNN_BACKWARD_X,
                                          EDDY_DNN_BACKWARD_WEIGHT};
    const fake_dnn_object *operation =
        fake_dnn_object_of(elements_of(graph, EDDY_DNN_GRAPH_OPERATIONS)->address,
                           FAKE_DNN_DESCRIPTOR, "cudnnBackendFinalize");
    for (size_t k = 0; operation && k < sizeof(alone) / sizeof(*alone); k++)
        if (operation->dnn_kind == alone[k])
            return fake_dnn_value_of(graph, EDDY_DNN_GRAPH_OPERATIONS)->count == 1 &&
                   read_given(graph, EDDY_DNN_GRAPH_OPERATIONS, alone[k]);
    return operation && read_operations(graph);
}

static int mode_of(const fake_dnn_object *heuristics) {
    return elements_of(heuristics, EDDY_DNN_HEURISTICS_MODE)->number;
}

/* BAD_PARAM is a finding; NOT_SUPPORTED is none. */
static eddy_dnn_status finish(fake_dnn_object *object) {
    fake_dnn_engine engines[FAKE_DNN_ENGINES];
    switch (object->dnn_kind) {
    case EDDY_DNN_FORWARD:
        return read_operation(object, FAKE_DNN_FORWARD, EDDY_DNN_FORWARD_FIRST)
                   ? 0
                   : EDDY_DNN_BAD_PARAM;
    case EDDY_DNN_BACKWARD_X:
        return read_operation(object, FAKE_DNN_BACKWARD_X, EDDY_DNN_BACKWARD_X_FIRST)
                   ? 0
                   : EDDY_DNN_BAD_PARAM;
    case EDDY_DNN_BACKWARD_WEIGHT:
        return read_operation(object, FAKE_DNN_BACKWARD_WEIGHT, EDDY_DNN_BACKWARD_WEIGHT_FIRST)
                   ? 0
                   : EDDY_DNN_BAD_PARAM;
    case EDDY_DNN_GRAPH:
        return read_graph(object) ? 0 : EDDY_DNN_BAD_PARAM;
    case EDDY_DNN_HEURISTICS:
        if (!read_given(object, EDDY_DNN_HEURISTICS_GRAPH, EDDY_DNN_GRAPH))
            return EDDY_DNN_BAD_PARAM;
        return fake_dnn_engines(object->question, mode_of(object), engines) < 0
                   ? EDDY_DNN_NOT_SUPPORTED
                   : 0;
    case EDDY_DNN_PLAN:
        if (!read_given(object, EDDY_DNN_PLAN_ENGINE_CONFIG, EDDY_DNN_ENGINE_CONFIG))
            return EDDY_DNN_BAD_PARAM;
        return object->engine.works ? 0 : EDDY_DNN_NOT_SUPPORTED;
    default:
        return 0;
    }
}

static _Atomic int plans_under_way; /* atomic: relaxed */

int fake_dnn_plans_under_way(void) {
    return eddy_load_relaxed(&plans_under_way);
}

static void end_library(void) {
    if (eddy_load_relaxed(&plans_under_way) > 0)
        fake_finding("exit: the library ends while a thread is inside it, which makes a plan");
}

/* What NVIDIA's loads for its first plan registers what is to run at exit. */
static void register_end(void) {
    (void)atexit(end_library);
}

static void take_time(eddy_dnn_kind kind) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int64_t ms = fake_options_read()->dnn_plan_ms;
    if (kind != EDDY_DNN_PLAN || ms == 0)
        return;
    pthread_once(&once, register_end);
    eddy_add_relaxed(&plans_under_way, 1);
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    eddy_sub_relaxed(&plans_under_way, 1);
}

eddy_dnn_status cudnnBackendFinalize(eddy_dnn_descriptor handle) {
    static const char name[] = "cudnnBackendFinalize";
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnBackendFinalize);
    if (status)
        return status;
    pthread_mutex_lock(&fake_dnn_lock);
    fake_dnn_object *object = fake_dnn_object_of(handle, FAKE_DNN_DESCRIPTOR, name);
    eddy_dnn_attribute unset = object ? fake_dnn_attribute_unset(object) : FAKE_DNN_NONE;
    if (unset != FAKE_DNN_NONE)
        fake_finding("descriptor: %s is given one of kind %d without attribute %d", name,
                     object->dnn_kind, unset);
    status = object && unset == FAKE_DNN_NONE ? finish(object) : EDDY_DNN_BAD_PARAM;
    eddy_dnn_kind kind = object ? object->dnn_kind : 0;
    if (status == 0)
        object->is_final = true;
    pthread_mutex_unlock(&fake_dnn_lock);
    take_time(kind);
    return status;
}

/* ---- reading ---- */

/* What is written to descriptors that who asks has made. */
static eddy_dnn_status read_to(const fake_dnn_object *from, eddy_dnn_kind kind,
                               const fake_dnn_engine *engine, eddy_dnn_descriptor handle) {
    fake_dnn_object *to =
        fake_dnn_object_of(handle, FAKE_DNN_DESCRIPTOR, "cudnnBackendGetAttribute");
    if (!to || to->dnn_kind != kind || to->is_final) {
        fake_finding("descriptor: cudnnBackendGetAttribute is to write to one of another kind");
        return EDDY_DNN_BAD_PARAM;
    }
    if (!ask(to))
        return EDDY_DNN_HOST_ALLOC_FAILED;
    *to->question = *from->question;
    to->engine = *engine;
    to->is_final = true;
    return 0;
}

static eddy_dnn_status read_results(const fake_dnn_object *heuristics, int64_t wanted,
                                    int64_t *count, void *elements) {
    fake_dnn_engine engines[FAKE_DNN_ENGINES];
    int there = fake_dnn_engines(heuristics->question, mode_of(heuristics), engines);
    eddy_dnn_status status = 0;
    *count = there;
    if (wanted == 0)
        return 0;
    /* NVIDIA's counts more than it then gives. */
    *count = wanted < there ? wanted : there;
    for (int64_t k = 0; k < *count && status == 0; k++)
        status = read_to(heuristics, EDDY_DNN_ENGINE_CONFIG, &engines[k],
                         ((eddy_dnn_descriptor *)elements)[k]);
    return status;
}

static eddy_dnn_status read_attribute(const fake_dnn_object *object, eddy_dnn_attribute attribute,
                                      eddy_dnn_type type, int64_t wanted, int64_t *count,
                                      void *elements) {
    if (attribute == EDDY_DNN_HEURISTICS_RESULTS && object->dnn_kind == EDDY_DNN_HEURISTICS &&
        type == EDDY_DNN_TYPE_DESCRIPTOR)
        return read_results(object, wanted, count, elements);
    *count = 1;
    if (attribute == EDDY_DNN_ENGINE_CONFIG_ENGINE && object->dnn_kind == EDDY_DNN_ENGINE_CONFIG &&
        type == EDDY_DNN_TYPE_DESCRIPTOR && wanted == 1)
        return read_to(object, EDDY_DNN_ENGINE, &object->engine, *(eddy_dnn_descriptor *)elements);
    if (attribute == EDDY_DNN_ENGINE_NOTES && object->dnn_kind == EDDY_DNN_ENGINE &&
        type == EDDY_DNN_TYPE_NOTE && wanted >= 1) {
        *count = object->engine.note != FAKE_DNN_NO_NOTE;
        if (*count > 0)
            *(int *)elements = object->engine.note;
        return 0;
    }
    if (attribute == EDDY_DNN_PLAN_WORKSPACE_BYTES && object->dnn_kind == EDDY_DNN_PLAN &&
        type == EDDY_DNN_TYPE_INT64 && wanted == 1) {
        *(int64_t *)elements = (int64_t)object->engine.workspace_bytes;
        return 0;
    }
    fake_finding("attribute: %d cannot be read so", attribute);
    return EDDY_DNN_BAD_PARAM;
}

eddy_dnn_status cudnnBackendGetAttribute(eddy_dnn_descriptor handle, eddy_dnn_attribute attribute,
                                         eddy_dnn_type type, int64_t wanted, int64_t *count,
                                         void *elements) {
    static const char name[] = "cudnnBackendGetAttribute";
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnBackendGetAttribute);
    if (status)
        return status;
    pthread_mutex_lock(&fake_dnn_lock);
    const fake_dnn_object *object = fake_dnn_object_of(handle, FAKE_DNN_DESCRIPTOR, name);
    if (object && !object->is_final)
        fake_finding("descriptor: %s is given one that is not final", name);
    status = object && object->is_final
                 ? read_attribute(object, attribute, type, wanted, count, elements)
                 : EDDY_DNN_BAD_PARAM;
    pthread_mutex_unlock(&fake_dnn_lock);
    return status;
}
