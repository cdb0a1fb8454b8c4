#include "../calls.h"
#include <eddy/stream.h>

Test(stream, ops_go_to_the_innermost_scopes_stream) {
    eddy_stream *stream =
        eddy_stream_create((eddy_device){0}, EDDY_OPTIONS(stream, .is_ordered = true));
    cr_assert_not_null(stream);
    eddy_tensor *t = counting(EDDY_SHAPE(4));
    cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
    cr_assert_eq(eddy_stream_scope_begin(NULL), EDDY_OK);
    eddy_stream_scope_end();
    eddy_tensor *sum = call("add", OF(t, t));
    eddy_event *event = eddy_event_record(stream);
    cr_assert_not_null(event);
    cr_assert_eq(eddy_event_wait(event, EDDY_FOREVER), EDDY_OK);
    cr_assert(eddy_event_is_ready(event));
    cr_assert(eddy_is_ready(sum));
    eddy_event_release(&event);
    cr_assert_null(event);
    eddy_stream_release(&stream);
    eddy_tensor *more = call("add", OF(sum, sum));
    eddy_stream_scope_end();
    eddy_stream_scope_end();
    ASSERT_F32(more, 0, 4, 8, 12);
}

Test(stream, a_stream_waits_for_an_event) {
    eddy_stream *stream = eddy_stream_create(EDDY_CPU, NULL);
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_not_null(eddy_map(t, EDDY_WRITE, EDDY_FOREVER));
    eddy_tensor *blocked = call("add", OF(t, t));
    eddy_event *event = eddy_event_record(NULL);
    cr_assert_not(eddy_event_is_ready(event));
    cr_assert_eq(eddy_event_wait(event, 0), EDDY_TIMED_OUT);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_stream_wait(stream, event), EDDY_OK);
    eddy_stream_scope_begin(stream);
    eddy_tensor *after = call("neg", OF(F32(EDDY_SHAPE(1), 3)));
    eddy_stream_scope_end();
    cr_assert_not(eddy_is_ready(after));
    eddy_unmap(t);
    cr_assert_eq(eddy_item_f64(after, NULL), -3);
    cr_assert(eddy_is_ready(blocked));
    eddy_event_release(&event);
    eddy_stream_release(&stream);
}

Test(stream, misuse_is_refused) {
    cr_assert_null(eddy_stream_create(EDDY_CUDA(99), NULL));
    cr_assert_eq(eddy_error_take(NULL), EDDY_UNSUPPORTED);
    cr_assert_not(eddy_event_is_ready(NULL));
    cr_assert_eq(eddy_event_wait(NULL, 0), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_stream_wait(NULL, NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_stream_release(NULL);
    eddy_event_release(NULL);
    eddy_stream_scope_end();
    cr_assert_null(eddy_stream_retain(NULL));
}

/* Of the thread's runtime, also where no stream is named. */
Test(stream, events_of_another_runtime_are_refused) {
    eddy_runtime *other = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(other), EDDY_OK);
    eddy_event *event = eddy_event_record(NULL);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    cr_assert_eq(eddy_stream_wait(NULL, event), EDDY_RUNTIME_MISMATCH);
    ASSERT_ERROR(EDDY_RUNTIME_MISMATCH, "different runtimes");
    eddy_event_release(&event);
    eddy_runtime_release(&other);
}

/* They take the default one of their own: here the other is held up by a map. */
Test(stream, ops_in_the_scope_of_another_runtimes_stream_are_not_on_it) {
    eddy_runtime *other = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(other), EDDY_OK);
    eddy_stream *stream = eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true));
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_not_null(eddy_map(t, EDDY_WRITE, EDDY_FOREVER));
    cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
    eddy_tensor *blocked = call("neg", OF(t));
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    eddy_tensor *own = counting(EDDY_SHAPE(2)), *sum = call("add", OF(own, own));
    cr_assert_eq(eddy_wait(sum, EDDY_FOREVER), EDDY_OK);
    eddy_stream_scope_end();
    eddy_release(&own);
    eddy_release(&sum);
    cr_assert_eq(eddy_runtime_use(other), EDDY_OK);
    cr_assert_not(eddy_is_ready(blocked));
    eddy_unmap(t);
    cr_assert_eq(eddy_wait(blocked, EDDY_FOREVER), EDDY_OK);
    eddy_release(&t);
    eddy_release(&blocked);
    eddy_stream_release(&stream);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    eddy_runtime_release(&other);
}
