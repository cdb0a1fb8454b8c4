#include <kernels/cpu/conv_prepared.h>

#include <kernels/cpu/prepared.h>
#include <string.h>

/* ---- descriptions ---- */

/* [group, to, from, rows, columns], or without the group where there is one alone; the library's choice without strides. */
static bool describe_weight(const eddy_conv_key *key, const int64_t *strides, dnnl_data_type_t type,
                            dnnl_memory_desc_t *desc) {
    const int64_t all[] = {key->groups, key->y_channels / key->groups, key->x_channels / key->groups, key->w_rows,
                           key->w_columns};
    int32_t first = key->groups > 1 ? 0 : 1, rank = 5 - first;
    dnnl_dims_t dims = {0}, lies = {0};
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = all[first + d];
        lies[d] = strides ? strides[first + d] : 0;
    }
    if (!strides)
        return dnnl_memory_desc_init_by_tag(desc, rank, dims, type, dnnl_format_tag_any) == dnnl_success;
    return dnnl_memory_desc_init_by_strides(desc, rank, dims, type, lies) == dnnl_success;
}

static bool describe_image(const eddy_conv_key *key, bool is_x, dnnl_memory_desc_t *plain, dnnl_memory_desc_t *own) {
    const eddy_conv_strides *lies = is_x ? &key->x : &key->y;
    dnnl_dims_t dims = {key->images, is_x ? key->x_channels : key->y_channels, is_x ? key->x_rows : key->y_rows,
                        is_x ? key->x_columns : key->y_columns};
    const dnnl_dims_t strides = {lies->image, lies->channel, lies->row, lies->column};
    bool is_result = key->direction == (is_x ? EDDY_CONV_DATA : EDDY_CONV_FORWARD);
    return dnnl_memory_desc_init_by_strides(plain, 4, dims, key->is_bf16 && !is_result ? dnnl_bf16 : dnnl_f32,
                                            strides) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(own, 4, dims, dnnl_f32, key->is_free ? dnnl_format_tag_any : dnnl_nhwc) ==
               dnnl_success;
}

static bool describe(const eddy_conv_key *key, eddy_conv_prepared *p) {
    const int64_t taps = key->w_rows * key->w_columns, from = key->x_channels / key->groups;
    const int64_t dense[] = {key->y_channels / key->groups * from * taps, from * taps, taps, key->w_columns, 1};
    bool is_result = key->direction == EDDY_CONV_WEIGHT;
    if (!describe_image(key, true, &p->x_plain, &p->x_own) || !describe_image(key, false, &p->y_plain, &p->y_own) ||
        !describe_weight(key, is_result ? dense : key->w_strides, key->is_bf16 && !is_result ? dnnl_bf16 : dnnl_f32,
                         &p->w_plain))
        return false;
    const dnnl_dims_t channels = {key->y_channels};
    if (dnnl_memory_desc_init_by_tag(&p->bias, 1, channels, dnnl_f32, dnnl_a) != dnnl_success)
        return false;
    p->w_own = key->w_order;
    return key->w_order.ndims > 0 || describe_weight(key, NULL, dnnl_f32, &p->w_own);
}

/* ---- primitives ---- */

static dnnl_status_t describe_convolution(const eddy_conv_key *key, const eddy_conv_prepared *p, bool is_forward,
                                          dnnl_convolution_desc_t *desc) {
    const dnnl_dims_t strides = {key->row_stride, key->column_stride};
    const dnnl_dims_t dilations = {key->row_dilation - 1, key->column_dilation - 1};
    const dnnl_dims_t before = {key->top, key->left}, after = {key->bottom, key->right};
    if (is_forward)
        return dnnl_dilated_convolution_forward_desc_init(desc, dnnl_forward_training, dnnl_convolution_direct,
                                                          &p->x_own, &p->w_own, key->has_bias ? &p->bias : NULL,
                                                          &p->y_own, strides, dilations, before, after);
    if (key->direction == EDDY_CONV_DATA)
        return dnnl_dilated_convolution_backward_data_desc_init(desc, dnnl_convolution_direct, &p->x_own, &p->w_own,
                                                                &p->y_own, strides, dilations, before, after);
    return dnnl_dilated_convolution_backward_weights_desc_init(desc, dnnl_convolution_direct, &p->x_own, &p->w_own,
                                                               NULL, &p->y_own, strides, dilations, before, after);
}

/* Its reference is slow, and what it does by matrix products is done as well without it. */
static bool is_worthwhile(const_dnnl_primitive_desc_t desc) {
    const char *name = NULL;
    return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name != NULL &&
           strstr(name, "ref") == NULL && strstr(name, "gemm") == NULL;
}

/* The orders that the library has chosen. */
static void take_orders(const eddy_conv_key *key, const_dnnl_primitive_desc_t desc, eddy_conv_prepared *p) {
    bool is_data = key->direction == EDDY_CONV_DATA, is_weight = key->direction == EDDY_CONV_WEIGHT;
    dnnl_query_t x = is_data ? dnnl_query_diff_src_md : dnnl_query_src_md;
    dnnl_query_t y = key->direction == EDDY_CONV_FORWARD ? dnnl_query_dst_md : dnnl_query_diff_dst_md;
    dnnl_query_t w = is_weight ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    p->x_own = *dnnl_primitive_desc_query_md(desc, x, 0);
    p->y_own = *dnnl_primitive_desc_query_md(desc, y, 0);
    p->w_own = *dnnl_primitive_desc_query_md(desc, w, 0);
    p->scratch = *dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    p->scratch_bytes = dnnl_memory_desc_get_size(&p->scratch);
}

static bool make_convolution(const eddy_conv_key *key, dnnl_engine_t engine, eddy_conv_prepared *p) {
    dnnl_convolution_desc_t forward, desc;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t hint = NULL, made = NULL;
    bool is_backward = key->direction != EDDY_CONV_FORWARD;
    bool is_good = describe_convolution(key, p, true, &forward) == dnnl_success &&
                   (!is_backward || describe_convolution(key, p, false, &desc) == dnnl_success) &&
                   dnnl_primitive_attr_create(&attributes) == dnnl_success &&
                   dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) == dnnl_success;
    /* A way back is planned knowing the way forth. */
    if (is_good && is_backward)
        is_good = dnnl_primitive_desc_create(&hint, &forward, NULL, engine, NULL) == dnnl_success;
    is_good =
        is_good &&
        dnnl_primitive_desc_create(&made, is_backward ? &desc : &forward, attributes, engine, hint) == dnnl_success &&
        is_worthwhile(made) && dnnl_primitive_create(&p->convolution, made) == dnnl_success;
    if (is_good)
        take_orders(key, made, p);
    dnnl_primitive_desc_destroy(made);
    dnnl_primitive_desc_destroy(hint);
    dnnl_primitive_attr_destroy(attributes);
    return is_good;
}

/* *bytes of a buffer in the order `own`, where the memory is in another. */
static bool make_reorder(dnnl_engine_t engine, const dnnl_memory_desc_t *plain, const dnnl_memory_desc_t *own,
                         bool is_result, dnnl_primitive_t *reorder, size_t *bytes) {
    if (dnnl_memory_desc_equal(plain, own))
        return true;
    dnnl_primitive_desc_t desc = NULL;
    bool is_good = dnnl_reorder_primitive_desc_create(&desc, is_result ? own : plain, engine, is_result ? plain : own,
                                                      engine, NULL) == dnnl_success &&
                   dnnl_primitive_create(reorder, desc) == dnnl_success;
    dnnl_primitive_desc_destroy(desc);
    *bytes = dnnl_memory_desc_get_size(own);
    return is_good;
}

static void unmake(void *prepared) {
    eddy_conv_prepared *p = prepared;
    dnnl_primitive_t all[] = {p->convolution, p->x_reorder, p->y_reorder, p->w_reorder};
    for (int i = 0; i < 4; i++)
        if (all[i])
            dnnl_primitive_destroy(all[i]);
}

static bool make(const void *of, void *prepared) {
    const eddy_conv_key *key = of;
    eddy_conv_prepared *p = prepared;
    dnnl_engine_t engine = eddy_dnnl_engine();
    int before = eddy_dnnl_begin(); /* primitives are planned for so many threads */
    bool is_good =
        engine && describe(key, p) && make_convolution(key, engine, p) &&
        make_reorder(engine, &p->x_plain, &p->x_own, key->direction == EDDY_CONV_DATA, &p->x_reorder, &p->x_bytes) &&
        make_reorder(engine, &p->y_plain, &p->y_own, key->direction == EDDY_CONV_FORWARD, &p->y_reorder, &p->y_bytes) &&
        make_reorder(engine, &p->w_plain, &p->w_own, key->direction == EDDY_CONV_WEIGHT, &p->w_reorder, &p->w_bytes);
    if (!is_good)
        unmake(p);
    eddy_dnnl_end(before);
    return is_good;
}

static const eddy_prepared_kind convolution = {sizeof(eddy_conv_key), sizeof(eddy_conv_prepared), make, unmake};

const eddy_conv_prepared *eddy_conv_prepared_acquire(const eddy_conv_key *key) {
    return eddy_prepared_acquire(&convolution, key);
}

void eddy_conv_prepared_release(const eddy_conv_prepared *prepared) {
    eddy_prepared_release(prepared);
}
