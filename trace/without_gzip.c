#include <base/status.h>
#include <trace/gzip.h>

eddy_status eddy_gzip_make(eddy_gzip **gzip, eddy_origin origin) {
    *gzip = NULL;
    return eddy_fail(EDDY_UNSUPPORTED, origin,
                     "the library was built without zlib, which compresses files");
}

void eddy_gzip_put(eddy_gzip *gzip, const char *bytes, size_t count, bool is_whole,
                   eddy_gzip_write *write, void *context) {
    (void)gzip, (void)bytes, (void)count, (void)is_whole, (void)write, (void)context;
}

void eddy_gzip_end(eddy_gzip *gzip, eddy_gzip_write *write, void *context) {
    (void)gzip, (void)write, (void)context;
}

void eddy_gzip_free(eddy_gzip *gzip) {
    (void)gzip;
}
