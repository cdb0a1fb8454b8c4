/* oneDNN 2: a memory descriptor is a struct, and operations are described before they are planned. */
#include <kernels/cpu/dnnl_api.h>

#include <string.h>

/* A call that fails leaves the struct undefined. */
static dnnl_status_t settle(eddy_dnnl_desc *desc, dnnl_status_t status) {
    if (status != dnnl_success)
        memset(desc, 0, sizeof(*desc));
    return status;
}

dnnl_status_t eddy_dnnl_desc_init_tag(eddy_dnnl_desc *desc, int rank, const dnnl_dims_t dims,
                                      dnnl_data_type_t type, dnnl_format_tag_t tag) {
    return settle(desc, dnnl_memory_desc_init_by_tag(&desc->is, rank, dims, type, tag));
}

dnnl_status_t eddy_dnnl_desc_init_strides(eddy_dnnl_desc *desc, int rank, const dnnl_dims_t dims,
                                          dnnl_data_type_t type, const dnnl_dims_t strides) {
    return settle(desc, dnnl_memory_desc_init_by_strides(&desc->is, rank, dims, type, strides));
}

dnnl_status_t eddy_dnnl_desc_init_copy(eddy_dnnl_desc *desc, const eddy_dnnl_desc *from) {
    *desc = *from;
    return dnnl_success;
}

dnnl_status_t eddy_dnnl_desc_init_plan(eddy_dnnl_desc *desc, const_dnnl_primitive_desc_t plan,
                                       dnnl_query_t operand) {
    const dnnl_memory_desc_t *found = dnnl_primitive_desc_query_md(plan, operand, 0);
    if (found)
        desc->is = *found;
    return settle(desc, found ? dnnl_success : dnnl_invalid_arguments);
}

void eddy_dnnl_desc_fini(eddy_dnnl_desc *desc) {
    memset(desc, 0, sizeof(*desc));
}

bool eddy_dnnl_desc_equal(const eddy_dnnl_desc *a, const eddy_dnnl_desc *b) {
    return dnnl_memory_desc_equal(&a->is, &b->is);
}

size_t eddy_dnnl_desc_bytes(const eddy_dnnl_desc *desc) {
    return dnnl_memory_desc_get_size(&desc->is);
}

bool eddy_dnnl_memory(const eddy_dnnl_desc *desc, dnnl_engine_t engine, void *data,
                      dnnl_memory_t *memory) {
    return dnnl_memory_create(memory, &desc->is, engine, data) == dnnl_success;
}

static dnnl_status_t dnnl_api_2_describe(const eddy_dnnl_convolution *c,
                                         dnnl_convolution_desc_t *desc) {
    const dnnl_memory_desc_t *x = &c->x->is, *w = &c->w->is, *y = &c->y->is,
                             *bias = c->bias ? &c->bias->is : NULL;
    if (c->kind == dnnl_backward_data)
        return dnnl_dilated_convolution_backward_data_desc_init(
            desc, c->algorithm, x, w, y, c->strides, c->dilations, c->before, c->after);
    if (c->kind == dnnl_backward_weights)
        return dnnl_dilated_convolution_backward_weights_desc_init(
            desc, c->algorithm, x, w, NULL, y, c->strides, c->dilations, c->before, c->after);
    return dnnl_dilated_convolution_forward_desc_init(
        desc, c->kind, c->algorithm, x, w, bias, y, c->strides, c->dilations, c->before, c->after);
}

dnnl_status_t eddy_dnnl_plan_convolution(const eddy_dnnl_convolution *convolution,
                                         dnnl_engine_t engine,
                                         const_dnnl_primitive_attr_t attributes,
                                         const_dnnl_primitive_desc_t hint,
                                         dnnl_primitive_desc_t *plan) {
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_api_2_describe(convolution, &desc);
    return status == dnnl_success
               ? dnnl_primitive_desc_create(plan, &desc, attributes, engine, hint)
               : status;
}

dnnl_status_t eddy_dnnl_plan_pool(const eddy_dnnl_pool *pool, dnnl_engine_t engine,
                                  const_dnnl_primitive_attr_t attributes,
                                  dnnl_primitive_desc_t *plan) {
    dnnl_pooling_desc_t desc;
    dnnl_status_t status = dnnl_pooling_forward_desc_init(
        &desc, dnnl_forward_inference, pool->algorithm, &pool->x->is, &pool->y->is, pool->strides,
        pool->window, pool->before, pool->after);
    return status == dnnl_success
               ? dnnl_primitive_desc_create(plan, &desc, attributes, engine, NULL)
               : status;
}

dnnl_status_t eddy_dnnl_plan_reorder(const eddy_dnnl_desc *from, const eddy_dnnl_desc *to,
                                     dnnl_engine_t engine, dnnl_primitive_desc_t *plan) {
    return dnnl_reorder_primitive_desc_create(plan, &from->is, engine, &to->is, engine, NULL);
}
