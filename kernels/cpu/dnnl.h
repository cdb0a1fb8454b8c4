/* oneDNN on the calling thread. The library may be built over OpenMP, whose number of threads is a setting of the calling
 * thread: it is set to 1 round every call that works or plans, and put back. */
#ifndef EDDY_KERNELS_CPU_DNNL_H
#define EDDY_KERNELS_CPU_DNNL_H

#include <oneapi/dnnl/dnnl.h>

/* Sets the thread's number to 1 and says what it was, for eddy_dnnl_end. */
int eddy_dnnl_begin(void);
void eddy_dnnl_end(int before);

/* The CPU's engine, the same for the life of the process; NULL where there is none. Any thread. */
dnnl_engine_t eddy_dnnl_engine(void);

#endif
