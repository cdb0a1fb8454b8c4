/* The macros that have another form in C++: each does there what it does in C. */
#include <cstdio>
#include <eddy/eddy.h>

static bool failed;

static void expect(bool holds, const char *what) {
    if (holds)
        return;
    eddy_error error = {};
    eddy_error_take(&error);
    std::fprintf(stderr, "%s: %s\n", what, error.message);
    failed = true;
}

int main() {
    eddy_scope *scope = eddy_scope_begin();
    const float values[] = {1, 2, 3, 4, 5, 6};
    eddy_tensor *x = eddy_from_data(values, EDDY_SHAPE(2, 3), EDDY_F32, nullptr);
    expect(eddy_rank_of(x) == 2 && eddy_dim_of(x, 1) == 3, "EDDY_SHAPE");
    expect(eddy_rank_of(eddy_ones(EDDY_SHAPE(), EDDY_F32, nullptr)) == 0, "EDDY_SHAPE, rank 0");
    expect(eddy_item_f64(eddy_sum(eddy_mul_s(x, EDDY_S(0.5)), EDDY_ALL_AXES, nullptr), nullptr) ==
               10.5,
           "EDDY_S");
    expect(eddy_item_f64(eddy_sum(x, EDDY_AXES(0, -1), nullptr), nullptr) == 21, "EDDY_AXES");
    eddy_tensor *column = eddy_sum(x, EDDY_AXES(1), EDDY_OPTIONS(sum, .keeps_dims = true));
    expect(eddy_rank_of(column) == 2 && eddy_dim_of(column, 0) == 2, "EDDY_OPTIONS");
    expect(eddy_dim_of(eddy_cat(EDDY_LIST(x, x, x), 0), 0) == 6, "EDDY_LIST");
    eddy_tensor *both[] = {x, x};
    expect(eddy_dim_of(eddy_cat(EDDY_ARRAY(both), 0), 0) == 4, "EDDY_ARRAY");
    eddy_tensor *one = nullptr;
    eddy_call("sum", EDDY_LIST(x),
              EDDY_ATTRIBUTES({"keeps_dims", EDDY_ATTRIBUTE_BOOL, {.boolean = true}}), &one);
    expect(eddy_rank_of(one) == 2 && eddy_count_of(one) == 1, "EDDY_ATTRIBUTES");
    expect(eddy_error_take(nullptr) == EDDY_OK, "no call failed");

    expect(!eddy_ones(EDDY_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), EDDY_F32,
                      nullptr),
           "17 dims");
    expect(eddy_error_take(nullptr) == EDDY_INVALID_ARGUMENT, "17 dimensions are refused");
    expect(!eddy_sum(x, EDDY_AXES(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), nullptr),
           "17 axes");
    expect(eddy_error_take(nullptr) == EDDY_INVALID_ARGUMENT, "17 axes are refused");
    eddy_scope_end(scope);
    return failed;
}
