/* What recorded functions say of themselves. */
#include <base/status.h>
#include <interpreter/call/describe.h>
#include <program/recorded_function.h>
#include <stdio.h>

/* A program that is there already, or a reason against one, is not changed by a call that failed. */
static const char *outcome_text(const eddy_signature *at) {
    if (at->is_replayed || at->is_given_up || at->outcome == EDDY_SIGNATURE_RECORDED)
        return "";
    return at->outcome == EDDY_SIGNATURE_FAILED
               ? "; the last call failed: it was not recorded"
               : "; the last call went on after a failed op: it was not recorded";
}

/* "; it reads input1, input2: each value has a program" */
static void describe_guards(const eddy_signature *at, char *text, size_t size) {
    const eddy_guard *guards = at->guards.items;
    eddy_text all = {text, size, 0};
    text[0] = 0;
    for (uint32_t i = 0; i < at->guards.count; i++) {
        char source[64];
        eddy_guard_describe_source(&guards[i], source, sizeof(source));
        eddy_text_add(&all, "%s%s", i == 0 ? "; it reads " : ", ", source);
    }
    eddy_text_end(&all);
}

static int explain_one(const eddy_signature *at, char *buffer, size_t size) {
    const char *state = !at->reason[0] ? "" : at->is_given_up ? "; not replayed: " : "; not yet: ";
    char missed[160] = "", guards[200];
    if (at->missed > 0)
        snprintf(missed, sizeof(missed), "; missed %llu times%s%s%s",
                 (unsigned long long)at->missed, at->miss ? " (" : "", at->miss ? at->miss : "",
                 at->miss ? ")" : "");
    describe_guards(at, guards, sizeof(guards));
    return snprintf(buffer, size, "(%s): ran %llu times, replayed %llu times%s%s%s%s%s%s%s\n",
                    at->text, (unsigned long long)at->ran, (unsigned long long)at->replayed,
                    at->is_foretold ? "; as programs of other sizes foretell" : "", missed, guards,
                    at->guards.count > 0 ? ": each value has a program" : "", outcome_text(at),
                    state, at->reason);
}

static int explain_locked(const eddy_recorded *recorded, char *buffer, size_t size) {
    int length = 0;
    for (const eddy_signature *at = recorded->first; at; at = at->next) {
        size_t used = (size_t)length < size ? (size_t)length : size;
        length += explain_one(at, buffer + used, size - used);
    }
    return length;
}

int eddy_recorded_explain(eddy_recorded *recorded, char *buffer, size_t size) {
    if (!recorded || (size > 0 && !buffer)) {
        eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("recorded_explain"),
                  recorded ? "there is no room for the text" : "the recorded function is NULL");
        return -1;
    }
    if (size > 0)
        buffer[0] = 0;
    eddy_lock_acquire(&recorded->lock);
    int length = explain_locked(recorded, buffer, size);
    eddy_lock_release(&recorded->lock);
    return length;
}
