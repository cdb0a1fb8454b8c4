#include <base/status.h>

#include <base/assert.h>
#include <base/call_site.h>
#include <base/log.h>
#include <base/range.h>
#include <base/unseen.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* <calling thread> only. In the static TLS block (initial-exec), so that an access never allocates. A library opened by dlopen
 * gets little of that block, so no other large data may be there. */
static _Thread_local eddy_error slot;
static _Thread_local eddy_outcome *innermost;
static _Thread_local uint64_t unseen_count; /* of those in the slot, without timeouts */

/* Copies at most size - 1 bytes and ends the text; NULL counts as "". */
static void copy_text(char *target, size_t size, const char *text) {
    size_t length = text ? strnlen(text, size - 1) : 0;
    if (length > 0)
        memcpy(target, text, length);
    target[length] = '\0';
}

/* Begins a message with "op: "; returns its length. */
static size_t begin_message(eddy_error *error, const char *op) {
    return op ? (size_t)snprintf(error->message, sizeof(error->message),
                                 "%.*s: ", (int)sizeof(error->op) - 1, op)
              : 0;
}

/* The first `begun` bytes of the message are written already. */
static void fill(eddy_error *error, eddy_status status, eddy_origin origin, size_t begun,
                 const char *format, va_list arguments) {
    error->status = status;
    copy_text(error->op, sizeof(error->op), origin.op);
    if (vsnprintf(error->message + begun, sizeof(error->message) - begun, format, arguments) < 0)
        copy_text(error->message, sizeof(error->message), eddy_status_text(status));
    error->address = eddy_call_site_address(origin.address);
    copy_text(error->place, sizeof(error->place), eddy_call_site_place(origin.address));
    error->sequence = 0;
    error->more = 0;
}

/* Errors that are not taken are reported at exit. A timeout is not an error. */
static void note_unseen(eddy_status status, const eddy_error *error) {
    if (status == EDDY_TIMED_OUT)
        return;
    unseen_count++;
    eddy_unseen_add(&slot, error);
}

/* Only the first failure is kept; a second one is only counted. */
static bool slot_is_taken(eddy_status status) {
    EDDY_ASSERT(status != EDDY_OK);
    for (eddy_outcome *o = innermost; o && o->first == EDDY_OK; o = o->outer)
        o->first = status;
    if (slot.status == EDDY_OK)
        return false;
    slot.more++;
    note_unseen(status, NULL);
    return true;
}

eddy_status eddy_fail(eddy_status status, eddy_origin origin, const char *format, ...) {
    const char *place = eddy_status_place_take();
    bool is_taken = slot_is_taken(status), is_logged = eddy_log_wants_errors();
    if (is_taken && !is_logged)
        return status;
    eddy_error counted, *error = is_taken ? &counted : &slot;
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, origin, begin_message(error, origin.op), format, arguments);
    va_end(arguments);
    size_t length = strlen(error->message);
    if (eddy_ranges_own)
        eddy_ranges_describe(eddy_ranges_own, error->message + length,
                             sizeof(error->message) - length);
    if (place)
        copy_text(error->place, sizeof(error->place), place);
    if (!is_taken)
        note_unseen(status, error);
    if (is_logged)
        eddy_log_error(error);
    return status;
}

eddy_status eddy_fail_record(const eddy_error *error) {
    if (!slot_is_taken(error->status)) {
        slot = *error;
        note_unseen(error->status, error);
    }
    if (eddy_log_wants_errors())
        eddy_log_error(error);
    return error->status;
}

void eddy_outcome_begin(eddy_outcome *outcome) {
    *outcome = (eddy_outcome){EDDY_OK, innermost};
    innermost = outcome;
}

void eddy_outcome_end(eddy_outcome *outcome) {
    EDDY_ASSERT(innermost == outcome);
    innermost = outcome->outer;
}

eddy_status eddy_outcome_why(const eddy_outcome *outcome) {
    return outcome->first == EDDY_OK ? EDDY_INVALID_ARGUMENT : outcome->first;
}

eddy_outcome *eddy_outcome_set_aside(void) {
    eddy_outcome *before = innermost;
    innermost = NULL;
    return before;
}

void eddy_outcome_go_on(eddy_outcome *outcome) {
    innermost = outcome;
}

void eddy_error_fill(eddy_error *error, eddy_status status, eddy_origin origin, uint64_t sequence,
                     const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, origin, 0, format, arguments);
    va_end(arguments);
    error->sequence = sequence;
}

static void empty_slot(void) {
    slot.status = EDDY_OK;
    slot.op[0] = slot.message[0] = slot.place[0] = '\0';
    slot.address = NULL;
    slot.sequence = slot.more = 0;
    unseen_count = 0;
}

void eddy_error_leave(void) {
    if (unseen_count > 0)
        eddy_unseen_keep(&slot);
    empty_slot();
}

eddy_status eddy_error_take(eddy_error *error) {
    eddy_status status = slot.status;
    if (error)
        *error = slot;
    if (unseen_count > 0)
        eddy_unseen_remove(&slot, unseen_count);
    empty_slot();
    return status;
}

bool eddy_error_peek(eddy_error *error) {
    if (slot.status != EDDY_OK)
        *error = slot;
    return slot.status != EDDY_OK;
}

void eddy_error_restore(const eddy_error *error) {
    eddy_error_take(NULL);
    slot = *error;
    note_unseen(error->status, error);
    for (uint64_t i = 0; i < error->more; i++)
        note_unseen(error->status, NULL);
}

void eddy_error_fork_child(void) {
    unseen_count = 0;
    eddy_unseen_fork_child();
    eddy_call_site_fork_child();
}

const char *eddy_status_place_take(void) {
    return eddy_call_site_set(NULL);
}

const char *eddy_status_name(eddy_status status) {
    switch (status) {
#define EDDY_STATUS_ROW(name, value, text)                                                         \
    case EDDY_##name:                                                                              \
        return "EDDY_" #name;
        EDDY_STATUS_LIST(EDDY_STATUS_ROW)
#undef EDDY_STATUS_ROW
    }
    return "?";
}

const char *eddy_status_text(eddy_status status) {
    switch (status) {
#define EDDY_STATUS_ROW(name, value, text)                                                         \
    case EDDY_##name:                                                                              \
        return text;
        EDDY_STATUS_LIST(EDDY_STATUS_ROW)
#undef EDDY_STATUS_ROW
    }
    return "unknown status";
}
