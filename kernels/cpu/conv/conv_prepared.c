#include <kernels/cpu/conv/conv_prepared.h>

#include <base/atomic.h>
#include <kernels/prepared.h>
#include <string.h>

/* ---- descriptions ---- */

/* If one of these returns false, *status says why. */

/* Dims: [group, to, from, rows, columns], without the group if there is only one. Without strides, the library chooses the
 * order. */
static bool describe_weight(const eddy_conv_key *key, const int64_t *strides, eddy_dnnl_desc *desc,
                            dnnl_status_t *status) {
    const int64_t all[] = {key->groups, key->y_channels / key->groups,
                           key->x_channels / key->groups, key->w_rows, key->w_columns};
    int32_t first = key->groups > 1 ? 0 : 1, rank = 5 - first;
    dnnl_dims_t dims = {0}, lies = {0};
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = all[first + d];
        lies[d] = strides ? strides[first + d] : 0;
    }
    return eddy_dnnl_goes(
        status, strides ? eddy_dnnl_desc_init_strides(desc, rank, dims, dnnl_f32, lies)
                        : eddy_dnnl_desc_init_tag(desc, rank, dims, dnnl_f32, dnnl_format_tag_any));
}

static bool describe_image(const eddy_conv_key *key, bool is_x, eddy_dnnl_desc *plain,
                           eddy_dnnl_desc *own, dnnl_status_t *status) {
    const eddy_conv_strides *lies = is_x ? &key->x : &key->y;
    dnnl_dims_t dims = {key->images, is_x ? key->x_channels : key->y_channels,
                        is_x ? key->x_rows : key->y_rows, is_x ? key->x_columns : key->y_columns};
    const dnnl_dims_t strides = {lies->image, lies->channel, lies->row, lies->column};
    dnnl_format_tag_t order = key->is_free ? dnnl_format_tag_any : dnnl_nhwc;
    return eddy_dnnl_goes(status, eddy_dnnl_desc_init_strides(plain, 4, dims, dnnl_f32, strides)) &&
           eddy_dnnl_goes(status, eddy_dnnl_desc_init_tag(own, 4, dims, dnnl_f32, order));
}

static bool conv_prepared_describe(const eddy_conv_key *key, eddy_conv_prepared *p,
                                   dnnl_status_t *status) {
    const int64_t taps = key->w_rows * key->w_columns, from = key->x_channels / key->groups;
    const int64_t dense[] = {key->y_channels / key->groups * from * taps, from * taps, taps,
                             key->w_columns, 1};
    const dnnl_dims_t channels = {key->y_channels};
    bool is_result = key->direction == EDDY_CONV_WEIGHT;
    return describe_image(key, true, &p->x_plain, &p->x_own, status) &&
           describe_image(key, false, &p->y_plain, &p->y_own, status) &&
           describe_weight(key, is_result ? dense : key->w_strides, &p->w_plain, status) &&
           eddy_dnnl_goes(status,
                          eddy_dnnl_desc_init_tag(&p->bias, 1, channels, dnnl_f32, dnnl_a)) &&
           (key->w_order ? eddy_dnnl_goes(status, eddy_dnnl_desc_init_copy(&p->w_own, key->w_order))
                         : describe_weight(key, NULL, &p->w_own, status));
}

/* ---- primitives ---- */

static dnnl_status_t plan(const eddy_conv_key *key, const eddy_conv_prepared *p,
                          dnnl_prop_kind_t kind, dnnl_engine_t engine,
                          const_dnnl_primitive_attr_t attributes, const_dnnl_primitive_desc_t hint,
                          dnnl_primitive_desc_t *made) {
    const eddy_dnnl_convolution wanted = {
        .kind = kind,
        .algorithm = key->is_winograd ? dnnl_convolution_winograd : dnnl_convolution_direct,
        .x = &p->x_own,
        .w = &p->w_own,
        .y = &p->y_own,
        .bias = key->has_bias ? &p->bias : NULL,
        .strides = {key->row_stride, key->column_stride},
        .dilations = {key->row_dilation - 1, key->column_dilation - 1},
        .before = {key->top, key->left},
        .after = {key->bottom, key->right},
    };
    return eddy_dnnl_plan_convolution(&wanted, engine, attributes, hint, made);
}

/* Rejects implementations that are not worth using: the library's reference code is slow, and its matrix products are no
 * faster than our own code. */
static dnnl_status_t look_at(const_dnnl_primitive_desc_t desc) {
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
    if (status != dnnl_success)
        return status;
    return !name || strstr(name, "ref") || strstr(name, "gemm") ? dnnl_unimplemented : dnnl_success;
}

static dnnl_status_t take_order(eddy_dnnl_desc *desc, const_dnnl_primitive_desc_t plan,
                                dnnl_query_t operand) {
    eddy_dnnl_desc_fini(desc);
    return eddy_dnnl_desc_init_plan(desc, plan, operand);
}

/* Reads the memory layouts that the library has chosen. */
static bool take_orders(const eddy_conv_key *key, const_dnnl_primitive_desc_t plan,
                        eddy_conv_prepared *p, dnnl_status_t *status) {
    bool is_data = key->direction == EDDY_CONV_DATA, is_weight = key->direction == EDDY_CONV_WEIGHT;
    bool is_forward = key->direction == EDDY_CONV_FORWARD;
    bool is_good =
        eddy_dnnl_goes(status, take_order(&p->x_own, plan,
                                          is_data ? dnnl_query_diff_src_md : dnnl_query_src_md)) &&
        eddy_dnnl_goes(
            status,
            take_order(&p->y_own, plan, is_forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md)) &&
        eddy_dnnl_goes(
            status, take_order(&p->w_own, plan,
                               is_weight ? dnnl_query_diff_weights_md : dnnl_query_weights_md)) &&
        eddy_dnnl_goes(status, take_order(&p->scratch, plan, dnnl_query_scratchpad_md));
    p->scratch_bytes = is_good ? eddy_dnnl_desc_bytes(&p->scratch) : 0;
    return is_good;
}

static bool make_convolution(const eddy_conv_key *key, dnnl_engine_t engine, eddy_conv_prepared *p,
                             dnnl_status_t *status) {
    static const dnnl_prop_kind_t kinds[] = {[EDDY_CONV_FORWARD] = dnnl_forward_training,
                                             [EDDY_CONV_DATA] = dnnl_backward_data,
                                             [EDDY_CONV_WEIGHT] = dnnl_backward_weights};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t hint = NULL, made = NULL;
    /* oneDNN plans a backward convolution with the plan of the forward one as a hint. */
    bool is_good =
        eddy_dnnl_goes(status, dnnl_primitive_attr_create(&attributes)) &&
        eddy_dnnl_goes(status, dnnl_primitive_attr_set_scratchpad_mode(
                                   attributes, dnnl_scratchpad_mode_user)) &&
        (key->direction == EDDY_CONV_FORWARD ||
         eddy_dnnl_goes(status, plan(key, p, dnnl_forward_training, engine, NULL, NULL, &hint))) &&
        eddy_dnnl_goes(status,
                       plan(key, p, kinds[key->direction], engine, attributes, hint, &made)) &&
        eddy_dnnl_goes(status, look_at(made)) &&
        eddy_dnnl_goes(status, dnnl_primitive_create(&p->convolution, made)) &&
        take_orders(key, made, p, status);
    dnnl_primitive_desc_destroy(made);
    dnnl_primitive_desc_destroy(hint);
    dnnl_primitive_attr_destroy(attributes);
    return is_good;
}

/* Prepares the conversion between `plain` and `own`, if they differ. *bytes: of the buffer in the order `own`. */
static bool make_reorder(dnnl_engine_t engine, const eddy_dnnl_desc *plain,
                         const eddy_dnnl_desc *own, bool is_result, dnnl_primitive_t *reorder,
                         size_t *bytes, dnnl_status_t *status) {
    if (eddy_dnnl_desc_equal(plain, own))
        return true;
    dnnl_primitive_desc_t made = NULL;
    bool is_good =
        eddy_dnnl_goes(status, eddy_dnnl_plan_reorder(is_result ? own : plain,
                                                      is_result ? plain : own, engine, &made)) &&
        eddy_dnnl_goes(status, dnnl_primitive_create(reorder, made));
    dnnl_primitive_desc_destroy(made);
    *bytes = eddy_dnnl_desc_bytes(own);
    return is_good;
}

static bool make_reorders(const eddy_conv_key *key, dnnl_engine_t engine, eddy_conv_prepared *p,
                          dnnl_status_t *status) {
    eddy_conv_direction made = (eddy_conv_direction)key->direction;
    return make_reorder(engine, &p->x_plain, &p->x_own, made == EDDY_CONV_DATA, &p->x_reorder,
                        &p->x_bytes, status) &&
           make_reorder(engine, &p->y_plain, &p->y_own, made == EDDY_CONV_FORWARD, &p->y_reorder,
                        &p->y_bytes, status) &&
           make_reorder(engine, &p->w_plain, &p->w_own, made == EDDY_CONV_WEIGHT, &p->w_reorder,
                        &p->w_bytes, status);
}

static void unmake(const eddy_prepared_kind *kind, void *prepared) {
    (void)kind;
    eddy_conv_prepared *p = prepared;
    dnnl_primitive_t all[] = {p->convolution, p->x_reorder, p->y_reorder, p->w_reorder};
    for (int i = 0; i < 4; i++)
        if (all[i])
            dnnl_primitive_destroy(all[i]);
    eddy_dnnl_desc *descs[] = {&p->x_plain, &p->y_plain, &p->w_plain, &p->x_own,
                               &p->y_own,   &p->w_own,   &p->bias,    &p->scratch};
    for (int i = 0; i < 8; i++)
        eddy_dnnl_desc_fini(descs[i]);
}

/* atomic: threads that prepare add 1 (relaxed); only the uniqueness of the numbers matters */
static _Atomic int64_t made_count;

static eddy_status make(const eddy_prepared_kind *kind, const void *of, void *prepared) {
    const eddy_conv_key *key = of;
    eddy_conv_prepared *p = prepared;
    dnnl_engine_t engine = eddy_dnnl_engine();
    dnnl_status_t status = dnnl_success;
    if (!engine)
        return EDDY_UNSUPPORTED;
    if (!eddy_dnnl_has_room())
        return EDDY_OUT_OF_MEMORY;
    p->number = eddy_add_relaxed(&made_count, 1) + 1;
    int before = eddy_dnnl_begin(); /* oneDNN plans primitives for the current number of threads */
    if (!conv_prepared_describe(key, p, &status) || !make_convolution(key, engine, p, &status) ||
        !make_reorders(key, engine, p, &status))
        unmake(kind, p);
    eddy_dnnl_end(before);
    return eddy_dnnl_made(status);
}

static const eddy_prepared_kind convolution = {sizeof(eddy_conv_prepared), make, unmake};

eddy_status eddy_conv_prepared_acquire(const eddy_conv_key *key,
                                       const eddy_conv_prepared **prepared) {
    const void *found;
    eddy_status status = eddy_prepared_acquire(&convolution, key, sizeof(*key), key, &found);
    *prepared = found;
    return status;
}
