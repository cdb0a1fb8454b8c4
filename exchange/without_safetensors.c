/* The library was built without safetensors files. */
#include <base/status.h>
#include <eddy/file.h>

static void refuse_safetensors(eddy_origin origin) {
    eddy_fail(EDDY_UNSUPPORTED, origin,
              "this library was built without safetensors files (its option safetensors)");
}

eddy_status eddy_safetensors_save(eddy_list tensors, const char *const *names, const char *path,
                                  const eddy_safetensors_save_options *options) {
    (void)tensors, (void)names, (void)path, (void)options;
    refuse_safetensors(EDDY_ORIGIN("safetensors_save"));
    return EDDY_UNSUPPORTED;
}

eddy_archive *eddy_safetensors_load(const char *path) {
    (void)path;
    refuse_safetensors(EDDY_ORIGIN("safetensors_load"));
    return NULL;
}

eddy_tensor *eddy_safetensors_load_one(const char *path, const char *name) {
    (void)path, (void)name;
    refuse_safetensors(EDDY_ORIGIN("safetensors_load_one"));
    return NULL;
}
