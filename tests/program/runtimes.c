#include "runtimes.h"

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <tests/program/outcome.h>

void in_runtimes(void (*test)(void)) {
    for (int i = 0; i < 3; i++) {
        eddy_runtime *runtime = eddy_runtime_create(
            EDDY_OPTIONS(runtime, .uses_one_thread = i == 0, .threads = i == 2 ? 2 : 1));
        must(eddy_runtime_use(runtime));
        eddy_scope *scope = eddy_scope_begin();
        test();
        eddy_scope_end(scope);
        must(EDDY_OK);
        cr_assert_eq(eddy_live_count(), 0);
        must(eddy_runtime_use(NULL));
        must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
        eddy_runtime_release(&runtime);
    }
}
