#include <base/log.h>
#include <base/memory.h>
#include <streams/cuda/backend.h>
#include <streams/cuda/dnn_answers.h>
#include <streams/cuda/dnn_plan.h>
#include <streams/cuda/geometry.h>
#include <streams/cuda/graph.h>
#include <streams/cuda/launch.h>
#include <streams/cuda/provider.h>
#include <streams/cuda/question.h>
#include <streams/cuda/workspace.h>
#include <string.h>

/* The most that a plan may ask for. Images that an engine lays otherwise are copied there, so that it is more than of products. */
#define WORKSPACE_BYTES ((uint64_t)256 << 20)

/* Geometries that are remembered: each has a few places, from which the one goes that was asked for least recently. */
#define SETS 128
#define PLACES 4

/* Engines tell no more apart. */
#define ALIGNMENT 16

_Static_assert(sizeof(eddy_cuda_dnn_geometry) == sizeof(eddy_cuda_dnn_question) +
                                                     EDDY_CUDA_DNN_TENSORS * sizeof(uint32_t) +
                                                     sizeof(uint64_t) &&
                   sizeof(eddy_cuda_dnn_geometry) % sizeof(uint64_t) == 0,
               "no padding");

/* An answer of the library. */
typedef struct answer {
    eddy_cuda_dnn_geometry of;
    uint64_t asked_at;    /* 0: the place is free */
    bool is_found;        /* else it has none */
    uint64_t captured_at; /* the last capture that has launched it (graph.h); 0: none */
    eddy_cuda_dnn_plan plan;
} answer;

struct eddy_cuda_dnn_answers {
    bool allows_tf32;
    eddy_dnn_context context; /* NULL: the library has refused one, and refuses everything */
    uint64_t now;             /* questions so far */
    answer known[SETS][PLACES];
};

bool eddy_cuda_dnn_open(bool *has_started) {
    if (eddy_cuda_provider_open(&eddy_cuda_dnn_provider))
        *has_started = true;
    return eddy_cuda_provider_is_open(&eddy_cuda_dnn_provider);
}

bool eddy_cuda_dnn_may_attend(const eddy_kernel_call *call) {
    return call->launch->queue->backend->options.allows_rounded_weights &&
           eddy_cuda_provider_is_open(&eddy_cuda_dnn_provider);
}

/* ---- asking ---- */

static void forget(answer *known) {
    eddy_cuda_dnn_plan_fini(&known->plan);
    *known = (answer){0};
}

/* A graph may have what the plan has made. */
static bool is_held(const answer *known, const eddy_cuda_graphs *graphs) {
    return known->captured_at != 0 && known->captured_at >= eddy_cuda_graphs_least(graphs);
}

/* The place of the geometry, or one for it, which is free then. NULL: graphs hold all that there may be. */
static answer *place_of(eddy_cuda_dnn_answers *answers, const eddy_cuda_graphs *graphs,
                        const eddy_cuda_dnn_geometry *of) {
    answer *set = answers->known[eddy_cuda_geometry_hash(of, sizeof(*of)) % SETS], *oldest = NULL;
    for (int k = 0; k < PLACES; k++)
        if (set[k].asked_at != 0 && memcmp(&set[k].of, of, sizeof(*of)) == 0)
            return &set[k];
    for (int k = 0; k < PLACES; k++)
        if ((!oldest || set[k].asked_at < oldest->asked_at) && !is_held(&set[k], graphs))
            oldest = &set[k];
    if (oldest)
        forget(oldest);
    return oldest;
}

/* NULL: the library has none, or lacks memory to say so, and will be asked again. */
static answer *answer_of(eddy_cuda_dnn_answers *answers, eddy_backend *backend,
                         const eddy_cuda_dnn_geometry *of) {
    answer *known = place_of(answers, eddy_cuda_backend_graphs(backend), of);
    if (!known)
        return NULL;
    if (known->asked_at == 0) {
        eddy_cuda_question_begin(backend);
        eddy_dnn_status status =
            eddy_cuda_dnn_plan_init(&known->plan, answers->context, of, answers->allows_tf32,
                                    of->has_workspace ? WORKSPACE_BYTES : 0);
        eddy_cuda_question_end(backend);
        if (status != 0)
            forget(known);
        if (eddy_dnn_lacks_memory(status))
            return NULL;
        known->of = *of;
        known->is_found = status == 0;
    }
    known->asked_at = ++answers->now;
    return known->is_found ? known : NULL;
}

/* ---- what a call needs ---- */

static eddy_cuda_dnn_geometry geometry_of(const eddy_cuda_dnn_question *question,
                                          const eddy_cuda_dnn_operands *operands) {
    eddy_cuda_dnn_geometry of = {.question = *question, .has_workspace = true};
    for (int k = 0; k < question->tensor_count; k++) {
        uint64_t bits = (uint64_t)(uintptr_t)operands->data[k] | ALIGNMENT;
        EDDY_ASSERT(operands->data[k]);
        of.alignment[k] = (uint32_t)(bits & -bits);
    }
    return of;
}

/* Within an entry. NULL: no memory. */
static eddy_cuda_dnn_answers *create(eddy_backend *backend) {
    eddy_cuda_dnn_answers *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_CACHE);
    if (!made)
        return NULL;
    made->allows_tf32 = backend->options.allows_tf32;
    eddy_cuda_question_begin(backend);
    eddy_dnn_status status = eddy_cuda_dnn.create(&made->context);
    eddy_cuda_question_end(backend);
    if (status != 0) {
        eddy_log_line("cuda: cuDNN does not start on a device, where all is Eddy's: status %d",
                      (int)status);
        made->context = NULL;
    }
    return made;
}

void eddy_cuda_dnn_answers_destroy(eddy_cuda_dnn_answers *answers) {
    if (!answers)
        return;
    for (int s = 0; s < SETS; s++)
        for (int k = 0; k < PLACES; k++)
            forget(&answers->known[s][k]);
    if (answers->context)
        (void)eddy_cuda_dnn.destroy(answers->context);
    eddy_memory_release(answers, sizeof(*answers), EDDY_MEMORY_CACHE);
}

/* Within an entry. */
static answer *find(eddy_backend *backend, const eddy_cuda_dnn_geometry *of) {
    eddy_cuda_dnn_answers **answers = eddy_cuda_backend_dnn_answers(backend);
    if (!*answers)
        *answers = create(backend);
    return *answers && (*answers)->context ? answer_of(*answers, backend, of) : NULL;
}

/* ---- launching ---- */

/* A launch: what it was given, and what was found for it. */
typedef struct dnn_launch {
    eddy_backend_launch *launch;
    const eddy_cuda_dnn_operands *operands;
    answer *found; /* NULL: there is none */
    void *workspace;
} dnn_launch;

/* False: the device is lost. */
static bool begin(dnn_launch *one, const eddy_cuda_dnn_geometry *of) {
    eddy_backend *backend = one->launch->queue->backend;
    if (!eddy_cuda_backend_begin(backend))
        return false;
    one->found = find(backend, of);
    return eddy_cuda_backend_end(backend, 0) == EDDY_OK;
}

/* Without memory for its workspace another plan may do. */
static bool begin_with_workspace(dnn_launch *one, const eddy_cuda_dnn_question *question) {
    eddy_backend_queue *queue = one->launch->queue;
    eddy_cuda_dnn_geometry of = geometry_of(question, one->operands);
    if (!begin(one, &of))
        return false;
    if (!one->found || one->found->plan.workspace_bytes == 0)
        return true;
    one->workspace = eddy_cuda_workspace_take(queue, one->found->plan.workspace_bytes);
    if (one->workspace)
        return true;
    of.has_workspace = false;
    return begin(one, &of);
}

static eddy_dnn_status execute(const dnn_launch *one) {
    const eddy_backend_queue *queue = one->launch->queue;
    eddy_dnn_context context = (*eddy_cuda_backend_dnn_answers(queue->backend))->context;
    eddy_dnn_status status = eddy_cuda_dnn.stream_set(context, eddy_cuda_backend_stream(queue));
    return status == 0 ? eddy_cuda_dnn_plan_execute(&one->found->plan, context, one->operands,
                                                    one->workspace)
                       : status;
}

static bool is_refusal(eddy_dnn_status status) {
    int category = (int)status / 1000 * 1000;
    return category == EDDY_DNN_BAD_PARAM || category == EDDY_DNN_NOT_SUPPORTED;
}

/* What the library refuses it has not launched: another kernel does it, now and later. Everything else is the device's. */
static bool launch_found(const dnn_launch *one) {
    eddy_backend_launch *launch = one->launch;
    eddy_backend *backend = launch->queue->backend;
    uint64_t first;
    if (!eddy_cuda_launch_gate(launch) || !eddy_cuda_backend_begin(backend))
        return true;
    if (eddy_cuda_backend_captures(backend, &first))
        one->found->captured_at = eddy_cuda_graphs_number(eddy_cuda_backend_graphs(backend));
    eddy_dnn_status status = execute(one);
    if (eddy_dnn_lacks_memory(status) && eddy_cuda_backend_spare(backend))
        status = execute(one);
    if (is_refusal(status)) {
        if (eddy_cuda_backend_spoil(backend)) {
            (void)eddy_cuda_backend_end(backend, 0);
            return true;
        }
        one->found->is_found = false;
        return eddy_cuda_backend_end(backend, 0) != EDDY_OK;
    }
    if (!eddy_dnn_lacks_memory(status)) {
        eddy_cuda_backend_end_library(backend, status == 0);
        return true;
    }
    if (eddy_cuda_backend_end(backend, 0) == EDDY_OK) {
        eddy_backend_fail(launch, EDDY_OUT_OF_MEMORY);
        launch->has_failed = true;
    }
    return true;
}

bool eddy_cuda_dnn_can(const eddy_kernel_call *call, const eddy_cuda_dnn_question *question,
                       const eddy_cuda_dnn_operands *operands) {
    dnn_launch one = {.launch = call->launch, .operands = operands};
    eddy_cuda_dnn_geometry of = geometry_of(question, operands);
    return !call->launch->writes_in_place && begin(&one, &of) && one.found;
}

bool eddy_cuda_dnn_launch(const eddy_kernel_call *call, const eddy_cuda_dnn_question *question,
                          const eddy_cuda_dnn_operands *operands) {
    eddy_backend_launch *launch = call->launch;
    dnn_launch one = {.launch = launch, .operands = operands};
    EDDY_ASSERT(eddy_cuda_provider_is_open(&eddy_cuda_dnn_provider));
    if (launch->writes_in_place)
        return false;
    if (launch->has_failed || !begin_with_workspace(&one, question))
        return true;
    bool is_launched = one.found && launch_found(&one);
    eddy_cuda_workspace_give(launch, one.workspace);
    return is_launched;
}
