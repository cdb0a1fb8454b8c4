/* Kernels that are made while the process runs, for fusions on devices with kernels of their own: a thread compiles them, or takes their images from disk (image_cache.h), and loads them. Whoever wants one goes on
 * meanwhile, without it.
 *
 *   WAITING --the thread takes it--> MAKING --> READY: it has a kernel, for as long as it is referred to
 *                                          '--> FAILED: for good; the log says why
 *
 * Equal fusions of a device are one object. Those that nobody refers to any more are kept for who may come, some hundreds, the least recently used dropped.
 *
 * Lock: the maker's, a leaf: nothing is compiled, read or loaded under it. At exit the thread ends what it is compiling, which the end of the compiler's library would take the ground from. That end is made by handlers
 * that the library registers while it compiles for the first time, and which run before ours if they are younger: so the first kernel that a process compiles is compiled at once, by who wants it. In a forked child nothing is
 * made, as no device is used there. */
#ifndef EDDY_STREAMS_MADE_KERNEL_H
#define EDDY_STREAMS_MADE_KERNEL_H

#include <eddy/device.h>
#include <kernels/fusion.h>
#include <kernels/kernel.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct eddy_made_kernel eddy_made_kernel;

/* A reference to that of the fusion on a device that the plug-in of its kind has created. It begins to be made, unless it was before; with is_at_once it is made when the call
 * returns, as where no thread can be started. folder_option: the runtime option cache_dir. NULL without memory. Any thread. */
eddy_made_kernel *eddy_made_kernel_create(const eddy_fusion *fusion, eddy_device device,
                                          const char *folder_option, bool is_at_once);
/* Gives up a reference, with nothing of the kernel under way. NULL is allowed. Any thread; it does not wait. */
void eddy_made_kernel_release(eddy_made_kernel *made);

/* The kernel; NULL: it is not there yet, or will never be. Any thread. */
const eddy_kernel *eddy_made_kernel_ready(eddy_made_kernel *made);
/* Waits until it is there, or known not to come: a second, or as long as those before it take. Any thread that holds no lock. */
void eddy_made_kernel_await(eddy_made_kernel *made);

/* Since the process began: those that were compiled, those that were taken from disk, and those that failed. */
typedef struct eddy_made_kernel_counts {
    int64_t compiled, taken, failed;
} eddy_made_kernel_counts;
eddy_made_kernel_counts eddy_made_kernels_counted(void);

/* In a forked child: what the parent has made is of no use there. */
void eddy_made_kernels_fork_child(void);

#endif
