/* oneDNN 3: a memory descriptor is an object, and operations are planned at once. */
#include <kernels/cpu/dnnl_api.h>

/* A call that fails leaves the pointer undefined. */
static dnnl_status_t settle(eddy_dnnl_desc *desc, dnnl_status_t status) {
    if (status != dnnl_success)
        desc->is = NULL;
    return status;
}

dnnl_status_t eddy_dnnl_desc_init_tag(eddy_dnnl_desc *desc, int rank, const dnnl_dims_t dims,
                                      dnnl_data_type_t type, dnnl_format_tag_t tag) {
    return settle(desc, dnnl_memory_desc_create_with_tag(&desc->is, rank, dims, type, tag));
}

dnnl_status_t eddy_dnnl_desc_init_strides(eddy_dnnl_desc *desc, int rank, const dnnl_dims_t dims,
                                          dnnl_data_type_t type, const dnnl_dims_t strides) {
    return settle(desc, dnnl_memory_desc_create_with_strides(&desc->is, rank, dims, type, strides));
}

dnnl_status_t eddy_dnnl_desc_init_copy(eddy_dnnl_desc *desc, const eddy_dnnl_desc *from) {
    return settle(desc, dnnl_memory_desc_clone(&desc->is, from->is));
}

dnnl_status_t eddy_dnnl_desc_init_plan(eddy_dnnl_desc *desc, const_dnnl_primitive_desc_t plan,
                                       dnnl_query_t operand) {
    const_dnnl_memory_desc_t found = dnnl_primitive_desc_query_md(plan, operand, 0);
    return settle(desc, found ? dnnl_memory_desc_clone(&desc->is, found) : dnnl_invalid_arguments);
}

void eddy_dnnl_desc_fini(eddy_dnnl_desc *desc) {
    if (desc->is)
        dnnl_memory_desc_destroy(desc->is);
    desc->is = NULL;
}

bool eddy_dnnl_desc_equal(const eddy_dnnl_desc *a, const eddy_dnnl_desc *b) {
    return dnnl_memory_desc_equal(a->is, b->is);
}

size_t eddy_dnnl_desc_bytes(const eddy_dnnl_desc *desc) {
    return dnnl_memory_desc_get_size(desc->is);
}

bool eddy_dnnl_memory(const eddy_dnnl_desc *desc, dnnl_engine_t engine, void *data,
                      dnnl_memory_t *memory) {
    return dnnl_memory_create(memory, desc->is, engine, data) == dnnl_success;
}

dnnl_status_t eddy_dnnl_plan_convolution(const eddy_dnnl_convolution *convolution,
                                         dnnl_engine_t engine,
                                         const_dnnl_primitive_attr_t attributes,
                                         const_dnnl_primitive_desc_t hint,
                                         dnnl_primitive_desc_t *plan) {
    const eddy_dnnl_convolution *c = convolution;
    const_dnnl_memory_desc_t x = c->x->is, w = c->w->is, y = c->y->is,
                             bias = c->bias ? c->bias->is : NULL;
    if (c->kind == dnnl_backward_data)
        return dnnl_convolution_backward_data_primitive_desc_create(
            plan, engine, c->algorithm, x, w, y, c->strides, c->dilations, c->before, c->after,
            hint, attributes);
    if (c->kind == dnnl_backward_weights)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            plan, engine, c->algorithm, x, w, NULL, y, c->strides, c->dilations, c->before,
            c->after, hint, attributes);
    return dnnl_convolution_forward_primitive_desc_create(plan, engine, c->kind, c->algorithm, x, w,
                                                          bias, y, c->strides, c->dilations,
                                                          c->before, c->after, attributes);
}

dnnl_status_t eddy_dnnl_plan_pool(const eddy_dnnl_pool *pool, dnnl_engine_t engine,
                                  const_dnnl_primitive_attr_t attributes,
                                  dnnl_primitive_desc_t *plan) {
    const dnnl_dims_t no_gaps = {0};
    return dnnl_pooling_forward_primitive_desc_create(
        plan, engine, dnnl_forward_inference, pool->algorithm, pool->x->is, pool->y->is,
        pool->strides, pool->window, no_gaps, pool->before, pool->after, attributes);
}

dnnl_status_t eddy_dnnl_plan_reorder(const eddy_dnnl_desc *from, const eddy_dnnl_desc *to,
                                     dnnl_engine_t engine, dnnl_primitive_desc_t *plan) {
    return dnnl_reorder_primitive_desc_create(plan, from->is, engine, to->is, engine, NULL);
}
