/* The scalar functions compile under NVRTC, which has no headers and no built-in functions of gcc's. Skipped where it is not installed.
 *
 * usage: nvrtc-words ROOT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define SKIPPED 77

/* One function of each header, in every type that it is in. */
static const char text[] =
    "#include <base/bf16.h>\n"
    "#include <kernels/angle.h>\n"
    "#include <kernels/cpu/half.h>\n"
    "#include <kernels/gauss.h>\n"
    "#include <kernels/power.h>\n"
    "extern \"C\" __global__ void words(float *x, double *y, uint16_t *h, int64_t *i) {\n"
    "    *x = eddy_gelu_f32(eddy_sin_f32(*x)) + eddy_pow_f32(*x, x[1]) +\n"
    "         eddy_floordiv_f32(*x, x[1]) + eddy_half_load(*h) + eddy_bf16_to_f32(h[1]);\n"
    "    *y = eddy_erf_f64(eddy_sin_f64(*y)) + eddy_pow_f64(*y, y[1]) +\n"
    "         eddy_remainder_f64(*y, y[1]) + eddy_log1p_f64(*y);\n"
    "    h[0] = eddy_half_store(x[1]);\n"
    "    h[1] = eddy_f32_to_bf16(x[1]);\n"
    "    *i = eddy_pow_i64(*i, i[1]);\n"
    "}\n";

/* Its functions, as far as they are used here; 0 is success. */
typedef struct nvrtc {
    int (*create)(void **program, const char *text, const char *name, int header_count,
                  const char *const *headers, const char *const *header_names);
    int (*compile)(void *program, int option_count, const char *const *options);
    int (*log_bytes)(void *program, size_t *bytes);
    int (*log)(void *program, char *log);
    int (*destroy)(void **program);
} nvrtc;

static void *find(void) {
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    return library;
}

static int compile(const nvrtc *api, const char *root) {
    char include[4096];
    snprintf(include, sizeof(include), "--include-path=%s", root);
    const char *const options[] = {"--std=c++17", "--gpu-architecture=compute_75", "--fmad=false",
                                   "--device-int128", include};
    void *program;
    size_t bytes = 0;
    if (api->create(&program, text, "words.cu", 0, NULL, NULL) != 0)
        return 1;
    int result = api->compile(program, sizeof(options) / sizeof(options[0]), options);
    if (api->log_bytes(program, &bytes) == 0 && bytes > 1) {
        char *log = malloc(bytes);
        if (log && api->log(program, log) == 0)
            fputs(log, stderr);
        free(log);
    }
    api->destroy(&program);
    return result != 0 || bytes > 1;
}

int main(int argc, char **argv) {
    void *library = argc == 2 ? find() : NULL;
    if (!library) {
        fputs("NVRTC is not there: nothing was compiled\n", stderr);
        return SKIPPED;
    }
    nvrtc api;
    *(void **)&api.create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&api.compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)&api.log_bytes = dlsym(library, "nvrtcGetProgramLogSize");
    *(void **)&api.log = dlsym(library, "nvrtcGetProgramLog");
    *(void **)&api.destroy = dlsym(library, "nvrtcDestroyProgram");
    if (!api.create || !api.compile || !api.log_bytes || !api.log || !api.destroy) {
        fputs("NVRTC lacks functions\n", stderr);
        return 1;
    }
    return compile(&api, argv[1]);
}
