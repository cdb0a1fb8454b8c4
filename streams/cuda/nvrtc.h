/* NVRTC, which compiles a kernel's text while the process runs: every entry that Eddy calls, once, as driver.h has those of the driver. It is a library of its own that a machine may lack, and is
 * opened when it is first needed. Names and values are those of nvrtc.h, CUDA 13. */
#ifndef EDDY_STREAMS_CUDA_NVRTC_H
#define EDDY_STREAMS_CUDA_NVRTC_H

#include <stddef.h>

#define EDDY_CUDA_NVRTC_LIBRARY "libnvrtc.so.13"

#ifdef EDDY_CUDA_NVRTC_TYPES /* the header that compares them brings its own */
EDDY_CUDA_NVRTC_TYPES
#else
typedef int eddy_nvrtc_result; /* an nvrtcResult; 0 is success */
typedef struct eddy_nvrtc_program_object *eddy_nvrtc_program;
#endif

#define EDDY_NVRTC_OUT_OF_MEMORY 1
#define EDDY_NVRTC_INVALID_INPUT 3
#define EDDY_NVRTC_INVALID_PROGRAM 4
#define EDDY_NVRTC_INVALID_OPTION 5
#define EDDY_NVRTC_COMPILATION 6 /* the text is wrong: its log says where */

/* symbol, name in the table, parameters */
/* clang-format off */
#define EDDY_CUDA_NVRTC_LIST(row) \
    row(nvrtcVersion, version, (int *major, int *minor)) \
    row(nvrtcGetNumSupportedArchs, architecture_count, (int *count)) \
    row(nvrtcGetSupportedArchs, architectures, (int *numbers)) \
    row(nvrtcCreateProgram, program_create, (eddy_nvrtc_program *program, const char *text, const char *name, int header_count, const char *const *headers, const char *const *header_names)) \
    row(nvrtcDestroyProgram, program_destroy, (eddy_nvrtc_program *program)) \
    row(nvrtcCompileProgram, compile, (eddy_nvrtc_program program, int option_count, const char *const *options)) \
    row(nvrtcGetProgramLogSize, log_bytes, (eddy_nvrtc_program program, size_t *bytes)) \
    row(nvrtcGetProgramLog, log, (eddy_nvrtc_program program, char *text)) \
    row(nvrtcGetCUBINSize, code_bytes, (eddy_nvrtc_program program, size_t *bytes)) \
    row(nvrtcGetCUBIN, code, (eddy_nvrtc_program program, char *image)) \
    row(nvrtcGetPTXSize, text_bytes, (eddy_nvrtc_program program, size_t *bytes)) \
    row(nvrtcGetPTX, text, (eddy_nvrtc_program program, char *image))
/* clang-format on */

typedef struct eddy_cuda_nvrtc {
#define EDDY_CUDA_NVRTC_ROW(symbol, name, parameters) eddy_nvrtc_result(*name) parameters;
    EDDY_CUDA_NVRTC_LIST(EDDY_CUDA_NVRTC_ROW)
#undef EDDY_CUDA_NVRTC_ROW
} eddy_cuda_nvrtc;

#endif
