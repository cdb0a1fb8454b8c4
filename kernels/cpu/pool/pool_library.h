/* Pools by oneDNN, slice by slice: of f32, without dilation, in images that lie row-major or channels last without gaps. The
 * library takes the elements of a window one after another, as pool.c does where it sums in sequence, so that both give the
 * same bits. Its max knows neither NaN nor -infinity: images are looked through first. */
#ifndef EDDY_KERNELS_CPU_POOL_LIBRARY_H
#define EDDY_KERNELS_CPU_POOL_LIBRARY_H

#include <kernels/cpu/pool/pool_plan.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef EDDY_HAVE_DNNL
#include <kernels/cpu/conv/conv_slice.h>

/* A max_pool2d, or an average that sums in sequence (those of row-major images do not: to turn the order of images and back
 * takes the library as long as we take). */
typedef struct eddy_pool_request {
    eddy_image x, out;
    eddy_pool_axis height, width;
    const eddy_attributes_pool *attributes; /* NULL: adaptive */
    bool averages;
} eddy_pool_request;

/* How the library does it, for the plan of a call (kernels/kernel.h). */
typedef struct eddy_pool_library {
    eddy_conv_cut cut;
    eddy_conv_kinds kinds;
    const void *prepared[EDDY_CONV_KINDS]; /* for each kind, others NULL; held until the end */
    int64_t parts;
    size_t scratch_bytes;                   /* of a part, rounded */
    int64_t x_image, x_row, y_image, y_row; /* elements from one to the next */
    bool averages;
} eddy_pool_library;

/* UNSUPPORTED where the library does not serve, OUT_OF_MEMORY: then there is nothing to end. Sets *has_started_library where it has
 * just been started, which it is not where memory lacks. For eddy_kernel.prepare. */
EDDY_MUST_USE eddy_status eddy_pool_library_prepare(eddy_pool_library *library,
                                                    const eddy_pool_request *request,
                                                    bool *has_started_library);
size_t eddy_pool_library_workspace(const eddy_pool_library *library);
void eddy_pool_library_end(const eddy_pool_library *library);
/* views: x, out. False where the result is still owed, as x holds what the library's max does not know. Where it lacks memory the call
 * fails. */
bool eddy_pool_library_run(const eddy_pool_library *library, const eddy_kernel_call *call);
#endif

#endif
