#include "outcome.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

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

void must_have_same_bits(eddy_tensor *a, eddy_tensor *b, const char *what) {
    size_t bytes = (size_t)eddy_count_of(a) * eddy_dtype_bytes(eddy_dtype_of(a));
    cr_assert(eddy_count_of(a) == eddy_count_of(b) && eddy_dtype_of(a) == eddy_dtype_of(b), "%s",
              what);
    char *elements = malloc(2 * bytes + 1);
    must(eddy_read(a, elements, bytes, NULL));
    must(eddy_read(b, elements + bytes, bytes, NULL));
    cr_assert_eq(memcmp(elements, elements + bytes, bytes), 0, "%s", what);
    free(elements);
}

double sum_of(eddy_tensor *x) {
    double sum = eddy_item_f64(eddy_sum(eddy_detach(x), EDDY_ALL_AXES, NULL), NULL);
    must(EDDY_OK);
    return sum;
}
