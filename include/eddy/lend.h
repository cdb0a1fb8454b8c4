/* Tensors lent to code of their device: kernels, libraries and copies that are none of Eddy's, launched on a stream of the driver's, in order with Eddy's own ops. CUDA
 * devices lend; on the CPU eddy_map does, and "far" runs no such code.
 *
 * An op of one's own (<eddy/op.h>) needs no lend: its kernel is given the stream, and the caller does not wait. */
#ifndef EDDY_LEND_H
#define EDDY_LEND_H

#include <eddy/export.h>
#include <eddy/host.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_lend {
    size_t size; /* set it to sizeof(eddy_lend): a newer library writes no more than that */
    void *data;  /* of the device: the tensor's first element; NULL where it has none */
    void
        *stream; /* of a CUDA device: a CUstream, which is a cudaStream_t, of its primary context */
} eddy_lend;

/* Lends the tensor's storage, for reading (EDDY_READ) or reading and writing (EDDY_WRITE), until eddy_lend_end. What any thread launches on lend->stream until then comes after
 * all ops on the storage that were issued before; ops on it issued meanwhile, by any thread, and its end come after what was launched. The elements have the tensor's strides. Two
 * lends for reading may be open at once, also one that eddy_map has made; a lend for writing is alone. The stream is that of the thread's stream scope, if it is one of the device, else
 * the device's default one, and stays good as long as the scope's stream, or the runtime.
 *
 * Blocks until those ops have run, so that nobody reads what has failed, `timeout` ns at most; then the device waits for nothing. Nothing launched may wait for the host, this
 * stream is not captured (others may be meanwhile, in any mode), and nothing is launched on it once the lend has ended. A thread that waits for a storage that it has lent itself gets WOULD_DEADLOCK; a lend that is
 * never ended holds back all ops on the storage, and the end of the runtime.
 *
 * On failure *lend is as it was: INVALID_ARGUMENT (flags, lend), UNSUPPORTED (the device runs no such code; the thread records), TIMED_OUT, WOULD_DEADLOCK, DEVICE_LOST, SHUT_DOWN, FORKED,
 * the tensor's own error. If the device is lost while it is lent, which calls of the driver then say, a tensor that was lent for writing is torn. */
EDDY_API eddy_status eddy_lend_begin(eddy_tensor *tensor, int flags, int64_t timeout,
                                     eddy_lend *lend);
/* Ends the calling thread's newest lend of this tensor, or, if it has none, the newest of any thread; never blocks. INVALID_ARGUMENT if the tensor is not lent. DEVICE_LOST if the stream was
 * left capturing: the lend has ended all the same, after what runs on the device. */
EDDY_API eddy_status eddy_lend_end(eddy_tensor *tensor);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_lend_begin(...) EDDY_AT_CALL_SITE(eddy_lend_begin(__VA_ARGS__))
#define eddy_lend_end(...) EDDY_AT_CALL_SITE(eddy_lend_end(__VA_ARGS__))
#endif
#endif
