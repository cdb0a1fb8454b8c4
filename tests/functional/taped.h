/* Cases about what is recorded: each ends with nothing alive and no error left. */
#ifndef EDDY_TESTS_FUNCTIONAL_TAPED_H
#define EDDY_TESTS_FUNCTIONAL_TAPED_H

#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>

static eddy_scope *taped_scope;

static void taped_begin(void) {
    taped_scope = eddy_scope_begin();
}

static void taped_end(void) {
    eddy_scope_end(taped_scope);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_live_count(), 0);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TAPE).bytes, 0);
}

/* What must hold at the end is asserted within the test: Criterion passes over a failed .fini. */
#define TAPED_TEST(suite, name)                                                                    \
    static void name##_body(void);                                                                 \
    Test(suite, name, .timeout = 120) {                                                            \
        taped_begin();                                                                             \
        name##_body();                                                                             \
        taped_end();                                                                               \
    }                                                                                              \
    static void name##_body(void)

static inline eddy_tensor *leaf(eddy_tensor *tensor) {
    cr_assert_eq(eddy_requires_grad_set(tensor, true), EDDY_OK);
    return tensor;
}

static inline void expect_error(eddy_status status, const char *text) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(error.status, status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, text), "%s", error.message);
}

#endif
