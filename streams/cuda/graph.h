/* Graphs of a device: rows of launches (streams/backend.h) that are launched again as one.
 *
 *   a row that is new --seen again--> captured: its launches go to a stream of their own, which runs nothing --> a graph --> launched, now and whenever the row comes again
 *
 * So a row whose addresses move from run to run costs no capture. What is captured counts tickets from where the queue says it (eddy_cuda_gate.base). A graph that was left for other addresses is changed
 * to those of its row that have come instead, where the driver can, and not made anew. Bounded: who was not used for the longest time goes; those of programs that are over, a few with each row.
 *
 * Launching thread, within an entry (eddy_cuda_backend_begin), but for the end. */
#ifndef EDDY_STREAMS_CUDA_GRAPH_H
#define EDDY_STREAMS_CUDA_GRAPH_H

#include <streams/backend.h>
#include <streams/cuda/driver.h>

typedef struct eddy_cuda_graphs eddy_cuda_graphs;

/* NULL: no memory. */
EDDY_MUST_USE eddy_cuda_graphs *eddy_cuda_graphs_create(void);
/* All launches have ended, or the device is lost. NULL is allowed. */
void eddy_cuda_graphs_destroy(eddy_cuda_graphs *graphs);

/* What to do with a row; CAPTURES: the stream that captures is in *stream until the end. */
eddy_row_way eddy_cuda_graphs_find(eddy_cuda_graphs *graphs, const eddy_backend_queue *queue,
                                   const eddy_backend_row *row, eddy_cu_graph_exec *exec,
                                   eddy_cu_stream *stream);
/* Of what was captured, with what the row has launched (`is_whole`); else it will not be tried again. NULL: there is none, and the row is to be launched. */
eddy_cu_graph_exec eddy_cuda_graphs_end(eddy_cuda_graphs *graphs, bool is_whole);
/* Of all graphs, with their memory. Nothing is captured. */
void eddy_cuda_graphs_clear(eddy_cuda_graphs *graphs);
/* The number of the capture that is under way: they go up. */
uint64_t eddy_cuda_graphs_number(const eddy_cuda_graphs *graphs);
/* The least number of a graph that is there, or of the capture; UINT64_MAX: there is none. NULL is allowed. What only lower ones have launched is in no graph. */
uint64_t eddy_cuda_graphs_least(const eddy_cuda_graphs *graphs);
/* Memory that launches of the row that is captured may use, one after another, as long as there is its graph. NULL: there is none. */
void *eddy_cuda_graphs_workspace(eddy_cuda_graphs *graphs, int64_t bytes);

#endif
