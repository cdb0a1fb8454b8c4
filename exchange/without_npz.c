/* The library was built without npz files. */
#include <base/status.h>
#include <eddy/file.h>

static void refuse_npz(eddy_origin origin) {
    eddy_fail(EDDY_UNSUPPORTED, origin, "this library was built without npz files (its option npz)");
}

eddy_status eddy_save_npz(eddy_list tensors, const char *const *names, const char *path) {
    (void)tensors, (void)names, (void)path;
    refuse_npz(EDDY_ORIGIN("save_npz"));
    return EDDY_UNSUPPORTED;
}

eddy_archive *eddy_load_npz(const char *path) {
    (void)path;
    refuse_npz(EDDY_ORIGIN("load_npz"));
    return NULL;
}

eddy_tensor *eddy_load_npz_one(const char *path, const char *name) {
    (void)path, (void)name;
    refuse_npz(EDDY_ORIGIN("load_npz_one"));
    return NULL;
}
