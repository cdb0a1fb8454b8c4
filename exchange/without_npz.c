/* The library was built without npz files. */
#include <base/status.h>
#include <eddy/file.h>

static void refuse_npz(eddy_origin origin) {
    eddy_fail(EDDY_UNSUPPORTED, origin,
              "this library was built without npz files (its option npz)");
}

eddy_status eddy_npz_save(eddy_list tensors, const char *const *names, const char *path,
                          const eddy_npz_save_options *options) {
    (void)tensors, (void)names, (void)path, (void)options;
    refuse_npz(EDDY_ORIGIN("npz_save"));
    return EDDY_UNSUPPORTED;
}

eddy_archive *eddy_npz_load(const char *path) {
    (void)path;
    refuse_npz(EDDY_ORIGIN("npz_load"));
    return NULL;
}

eddy_tensor *eddy_npz_load_one(const char *path, const char *name) {
    (void)path, (void)name;
    refuse_npz(EDDY_ORIGIN("npz_load_one"));
    return NULL;
}
