#include "outcome.h"

#include <criterion/criterion.h>

void must(eddy_status status) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

void expect_error(eddy_status status, const char *sentence) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_str_eq(error.message, sentence);
}

double sum_of(eddy_tensor *x) {
    double sum = eddy_item_f64(eddy_sum(eddy_detach(x), EDDY_ALL_AXES, NULL), NULL);
    must(EDDY_OK);
    return sum;
}
