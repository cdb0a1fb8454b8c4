/* Pools by oneDNN, slice by slice: of f32, without dilation, in images that lie row-major or channels last without gaps. The
 * library takes the elements of a window one after another, as pool.c does where it sums in sequence, so that both give the
 * same bits. Its max knows neither NaN nor -infinity: images are looked through first. */
#ifndef EDDY_KERNELS_CPU_POOL_LIBRARY_H
#define EDDY_KERNELS_CPU_POOL_LIBRARY_H

#include <kernels/cpu/pool/pool_plan.h>
#include <stdbool.h>
#include <stddef.h>

/* A max_pool2d, or an average that sums in sequence (those of row-major images do not: to turn the order of images and back
 * takes the library as long as we take). */
typedef struct eddy_pool_request {
    eddy_image x, out;
    eddy_pool_axis height, width;
    const eddy_attributes_pool *attributes; /* NULL: adaptive */
    bool averages;
} eddy_pool_request;

/* Bytes of workspace; 0 where the library needs none or does not serve. Any thread. */
size_t eddy_pool_library_workspace(const eddy_pool_request *request);
/* False where the result is still owed: the library does not serve, or gave up. */
bool eddy_pool_library_run(const eddy_pool_request *request, const eddy_kernel_call *call);
/* For eddy_kernel.start: starts the library where it serves. */
bool eddy_pool_library_start(const eddy_pool_request *request);

#endif
