/* The numbers of a run: those that it draws, and those that it is given. */
#include <base/number.h>
#include <base/status.h>
#include <float.h>
#include <interpreter/handle/generator.h>
#include <interpreter/handle/stream.h>
#include <program/inlined.h>
#include <program/run.h>
#include <string.h>

static int64_t *words_of(const eddy_run *r) {
    return r->arguments->words + r->program->executable->base_count - 1;
}

static size_t drawn_bytes(const eddy_run *r) {
    return 2 * sizeof(int64_t) * r->program->code.draws.count;
}

/* NULL: the running thread's own. */
static eddy_generator *generator_of(const eddy_run *r, uint32_t draw) {
    eddy_generator **generators = r->program->generators.items;
    uint32_t number = eddy_code_draw_at(&r->program->code, draw)->generator;
    return number == EDDY_CODE_NONE ? NULL : generators[number];
}

static eddy_status draw_one(const eddy_run *r, uint32_t draw, uint64_t *words) {
    if (!eddy_recorder_lets_run(r->caller)) {
        eddy_recorder_draw(r->caller->recorder, words);
        return EDDY_OK;
    }
    return eddy_generator_draw(r->caller, r->program->runtime, generator_of(r, draw), r->origin,
                               &words[0], &words[1]);
}

static eddy_status draw_now(const eddy_run *r) {
    uint64_t *words = (uint64_t *)words_of(r);
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < r->program->code.draws.count && status == EDDY_OK; i++)
        status = draw_one(r, i, &words[2 * (size_t)i]);
    if (r->drawn && drawn_bytes(r) > 0)
        memcpy(r->drawn, words, drawn_bytes(r));
    return status;
}

/* The words of the run change, and get a place of their own. */
static eddy_status make_late(eddy_run *r) {
    const eddy_code *code = &r->program->code;
    r->late = eddy_late_draws_create(code->draws.count, words_of(r), eddy_code_run_words(code));
    return r->late ? EDDY_OK : eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a run");
}

/* Nothing is drawn yet: the run will, from generators that are held for it. */
static eddy_status draw_late(eddy_run *r) {
    if (r->caller->callback == EDDY_CALLBACK_ACCESS)
        return eddy_fail(EDDY_WOULD_DEADLOCK, r->origin,
                         "the program draws random numbers in a branch or a loop, so that a run is "
                         "waited for, and a callback may not wait");
    memset(words_of(r), 0, drawn_bytes(r));
    eddy_status status = make_late(r);
    for (uint32_t i = 0; i < r->program->code.draws.count && status == EDDY_OK; i++)
        status = eddy_generator_hold(r->caller, r->program->runtime, generator_of(r, i), r->origin,
                                     &r->late->generators[i]);
    return status;
}

static bool draws_late(const eddy_run *r) {
    return r->program->code.draws_late && !r->given_draws && eddy_recorder_lets_run(r->caller);
}

eddy_status eddy_run_draw(eddy_run *r) {
    eddy_status status = EDDY_OK;
    if (draws_late(r))
        return draw_late(r);
    if (r->given_draws)
        memcpy(words_of(r), r->given_draws, drawn_bytes(r));
    else
        status = draw_now(r);
    return status == EDDY_OK && r->program->code.sets_draws ? make_late(r) : status;
}

/* The storage that is written by the run last: it is over once that is. EDDY_CODE_NONE where it writes none. */
static uint32_t written_by(const eddy_run *r) {
    uint32_t i = r->program->executable->base_count - 1;
    while (i > 0)
        if (r->operands[--i].access != EDDY_ACCESS_CONST)
            return i;
    return EDDY_CODE_NONE;
}

static eddy_status await_all(const eddy_run *r, const eddy_vm_wait *wait) {
    eddy_runtime *runtime = r->program->runtime;
    eddy_vm_event *event;
    uint8_t device = eddy_runtime_vm_device(runtime, r->program->executable->device);
    eddy_status status = eddy_vm_event_record(
        runtime->vm, eddy_stream_of_caller(r->caller, runtime, device), r->origin, &event);
    if (status != EDDY_OK)
        return status;
    status = eddy_vm_event_wait(event, wait);
    eddy_vm_event_release(event);
    return status;
}

/* Waits until the run is over. */
static eddy_status await_run(const eddy_run *r) {
    eddy_vm_wait wait = {EDDY_FOREVER, r->origin};
    uint32_t written = written_by(r);
    return written == EDDY_CODE_NONE ? await_all(r, &wait)
                                     : eddy_vm_await_storage(r->program->runtime->vm,
                                                             r->operands[written].storage, &wait);
}

eddy_status eddy_run_await_draws(const eddy_run *r) {
    if (!draws_late(r))
        return EDDY_OK;
    eddy_status status = await_run(r);
    if (status == EDDY_OK && r->drawn)
        memcpy(r->drawn, r->late->words, drawn_bytes(r));
    return status;
}

void eddy_run_undraw(const eddy_run *r) {
    const uint64_t *words = (const uint64_t *)words_of(r);
    for (uint32_t i = r->program->code.draws.count; i-- > 0;)
        eddy_generator_undraw(r->caller, r->program->runtime, generator_of(r, i),
                              words[2 * (size_t)i], words[2 * (size_t)i + 1]);
}

/* The number for one use. */
static eddy_status convert(const eddy_run *r, const eddy_code_scalar *use, int64_t *words) {
    eddy_scalar number = r->scalars[use->number];
    number.slot = 0;
    if (use->is_double) {
        double value =
            number.kind == EDDY_SCALAR_FLOAT ? number.value.floating : (double)number.value.integer;
        /* The op's function, or its inference, would look at it before the call: rates and norms are finite and not negative, probabilities up to 1. */
        double most = use->op->is_random || use->op->redraws ? 1 : DBL_MAX;
        if (!(value >= 0 && value <= most) && r->unfit) {
            *r->unfit = "a number was none that an op takes";
            return EDDY_INVALID_ARGUMENT;
        }
        memcpy(words, &value, sizeof(value));
        return EDDY_OK;
    }
    if (!eddy_number_convert(&number, (eddy_dtype)use->dtype, use->wraps)) {
        if (r->unfit) {
            *r->unfit = "a number was none that an op takes";
            return EDDY_OUT_OF_RANGE;
        }
        char text[64];
        eddy_number_format(number, text, sizeof(text));
        return eddy_fail(EDDY_OUT_OF_RANGE, r->origin,
                         "number %u is %s, which %s of %s does not hold", use->number, text,
                         eddy_dtype_name((eddy_dtype)use->dtype), use->op->name);
    }
    memcpy(words, &number, sizeof(number));
    return EDDY_OK;
}

eddy_status eddy_run_convert(const eddy_run *r) {
    const eddy_code *code = &r->program->code;
    int64_t *words = words_of(r) + 2 * (size_t)code->draws.count;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < code->scalars.count && status == EDDY_OK; i++)
        status = convert(r, eddy_code_scalar_at(code, i), words + 2 * (size_t)i);
    return status;
}
