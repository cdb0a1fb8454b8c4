/* The backend of a GPU (streams/backend.h). Its queues are streams of the driver; tickets are numbers that a stream writes to pinned memory, where the
 * host polls them; no host function is ever given to the driver. */
#ifndef EDDY_STREAMS_CUDA_BACKEND_H
#define EDDY_STREAMS_CUDA_BACKEND_H

#include <streams/backend.h>
#include <streams/cuda/device.h>
#include <streams/cuda/dnn_answers.h>
#include <streams/cuda/fence.h>
#include <streams/cuda/gemm.h>
#include <streams/cuda/graph.h>

/* OUT_OF_MEMORY, DEVICE_LOST, with a sentence in `why`. */
EDDY_MUST_USE eddy_status eddy_cuda_backend_create(const eddy_cuda_device *device,
                                                   const eddy_backend_options *options,
                                                   eddy_backend **backend, char *why, size_t size);
/* Of a backend that eddy_cuda_backend_create has made. */
const eddy_cuda_device *eddy_cuda_backend_device(const eddy_backend *backend);
eddy_cu_stream eddy_cuda_backend_stream(const eddy_backend_queue *queue);
eddy_cuda_fences *eddy_cuda_backend_fences(eddy_backend *backend);
/* Where the backend keeps what it knows of the library of products, NULL at first; its end destroys it. Launching thread. */
eddy_cuda_gemms **eddy_cuda_backend_gemms(const eddy_backend *backend);
/* Whether a row of launches is captured, whose first ticket is *first: they count from there. The graphs, while one is. Launching thread. */
bool eddy_cuda_backend_captures(const eddy_backend *backend, uint64_t *first);
eddy_cuda_graphs *eddy_cuda_backend_graphs(const eddy_backend *backend);
/* Where the queue says the first ticket of the graph that it launches: the device's memory. */
eddy_cu_address eddy_cuda_backend_base(const eddy_backend_queue *queue);
/* The same of cuDNN. */
eddy_cuda_dnn_answers **eddy_cuda_backend_dnn_answers(const eddy_backend *backend);
/* The row of the ticket in the table of marks (kernels/cuda/parameters.h), and the whole table: the device's memory. */
eddy_cu_address eddy_cuda_backend_mark(const eddy_backend *backend, uint64_t ticket);
uint64_t *eddy_cuda_backend_marks(const eddy_backend *backend);
/* OK, or DEVICE_LOST: the driver has refused what it never refuses while the device works. Any thread, not within an entry. */
eddy_status eddy_cuda_backend_check(eddy_backend *backend, eddy_cu_result result);
/* Around the launching thread's calls of the driver, which are for the device. False: it is lost, or about to be, and nothing is to be launched. */
EDDY_MUST_USE bool eddy_cuda_backend_begin(eddy_backend *backend);
/* As eddy_cuda_backend_check. */
eddy_status eddy_cuda_backend_end(eddy_backend *backend, eddy_cu_result result);
/* Whether the entry asks a library, for which exit waits longer (question.h). Launching thread, within an entry. */
void eddy_cuda_backend_asks_set(eddy_backend *backend, bool asks);
/* Ahead of what may hold the launching thread up: marks that wait for further launches are written. Launching thread, within an entry. */
eddy_cu_result eddy_cuda_backend_write_marks(eddy_backend *backend);
/* The driver lacks memory for a launch: gives it what graphs and pools keep unused. Whether that was something, so that it may be tried again. Launching thread, within an entry. */
bool eddy_cuda_backend_spare(eddy_backend *backend);
/* Whether a row is captured: it is lost then, and nothing else is. Launching thread. */
bool eddy_cuda_backend_spoil(eddy_backend *backend);
/* The same after a launch of a library's, which says less than the driver: what fails is the device's failure, but while a row is captured, which may be what the library cannot have. */
void eddy_cuda_backend_end_library(eddy_backend *backend, bool has_launched);

#endif
