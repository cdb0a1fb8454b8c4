/* Ranges in NVTX, as Nsight Systems shows them: a listener (trace.h) that is there only where a tool has injected itself, so that others pay nothing.
 *
 * Domain "eddy"; a category for each phase; the op's name as message, registered once. Payload by a schema: sequence, stream, bytes, dtypes and shapes, place of the call; the sequence number alone where the
 * tool knows no schemas. Ranges are on the thread that does the work. Without NVTX's headers (-Dnvtx) nothing of it is compiled. */
#ifndef EDDY_BASE_NVTX_H
#define EDDY_BASE_NVTX_H

/* Begins to serve the tool that NVTX_INJECTION64_PATH names, once there is one. Any thread; whenever a runtime is created. */
#ifdef EDDY_HAVE_NVTX
void eddy_nvtx_look(void);
/* Tells that tool what the calling thread is called. */
void eddy_nvtx_name_thread(const char *name);
/* And what a stream of CUDA's driver is called. Nothing where there is none. */
void eddy_nvtx_name_stream(void *stream, const char *name);
#else
static inline void eddy_nvtx_look(void) {
}
static inline void eddy_nvtx_name_thread(const char *name) {
    (void)name;
}
static inline void eddy_nvtx_name_stream(void *stream, const char *name) {
    (void)stream, (void)name;
}
#endif

#endif
