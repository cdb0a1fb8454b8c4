/* The parts of oneDNN's interface that differ between versions 2 and 3: memory descriptors, and plans of primitives. meson
 * compiles dnnl_api_2.c or dnnl_api_3.c, depending on the library that it finds. */
#ifndef EDDY_KERNELS_CPU_DNNL_API_H
#define EDDY_KERNELS_CPU_DNNL_API_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>

/* A memory descriptor: a struct in oneDNN 2, an object in 3. A zeroed one needs no fini. The functions below return the
 * library's status; if one fails, the descriptor is zeroed. */
typedef struct eddy_dnnl_desc {
    dnnl_memory_desc_t is;
} eddy_dnnl_desc;

dnnl_status_t eddy_dnnl_desc_init_tag(eddy_dnnl_desc *desc, int rank, const dnnl_dims_t dims,
                                      dnnl_data_type_t type, dnnl_format_tag_t tag);
dnnl_status_t eddy_dnnl_desc_init_strides(eddy_dnnl_desc *desc, int rank, const dnnl_dims_t dims,
                                          dnnl_data_type_t type, const dnnl_dims_t strides);
dnnl_status_t eddy_dnnl_desc_init_copy(eddy_dnnl_desc *desc, const eddy_dnnl_desc *from);
/* The descriptor of an operand in a plan. */
dnnl_status_t eddy_dnnl_desc_init_plan(eddy_dnnl_desc *desc, const_dnnl_primitive_desc_t plan,
                                       dnnl_query_t operand);
void eddy_dnnl_desc_fini(eddy_dnnl_desc *desc);

bool eddy_dnnl_desc_equal(const eddy_dnnl_desc *a, const eddy_dnnl_desc *b);
size_t eddy_dnnl_desc_bytes(const eddy_dnnl_desc *desc);
bool eddy_dnnl_memory(const eddy_dnnl_desc *desc, dnnl_engine_t engine, void *data,
                      dnnl_memory_t *memory);

/* A convolution: dnnl_forward_training, dnnl_backward_data (its result is x) or dnnl_backward_weights (its result is w). */
typedef struct eddy_dnnl_convolution {
    dnnl_prop_kind_t kind;
    dnnl_alg_kind_t algorithm;
    const eddy_dnnl_desc *x, *w, *y;
    const eddy_dnnl_desc *bias; /* NULL: none; forward only */
    dnnl_dims_t strides, dilations, before, after;
} eddy_dnnl_convolution;

/* A forward pool whose windows have no dilation. */
typedef struct eddy_dnnl_pool {
    dnnl_alg_kind_t algorithm;
    const eddy_dnnl_desc *x, *y;
    dnnl_dims_t window, strides, before, after;
} eddy_dnnl_pool;

/* Plans. The plan of a backward convolution needs the plan of the forward one, `hint`. */
dnnl_status_t eddy_dnnl_plan_convolution(const eddy_dnnl_convolution *convolution,
                                         dnnl_engine_t engine,
                                         const_dnnl_primitive_attr_t attributes,
                                         const_dnnl_primitive_desc_t hint,
                                         dnnl_primitive_desc_t *plan);
dnnl_status_t eddy_dnnl_plan_pool(const eddy_dnnl_pool *pool, dnnl_engine_t engine,
                                  const_dnnl_primitive_attr_t attributes,
                                  dnnl_primitive_desc_t *plan);
dnnl_status_t eddy_dnnl_plan_reorder(const eddy_dnnl_desc *from, const eddy_dnnl_desc *to,
                                     dnnl_engine_t engine, dnnl_primitive_desc_t *plan);

#endif
