#include <trace/gzip.h>

#include <base/memory.h>
#include <base/status.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* 32 KB, and the header of .gz rather than that of zlib */
#define OUT_BYTES 65536
#define LEVEL 3 /* a tenth less than with the least */

struct eddy_gzip {
    z_stream stream;
    char out[OUT_BYTES];
};

eddy_status eddy_gzip_make(eddy_gzip **made, eddy_origin origin) {
    eddy_gzip *gzip = eddy_memory_acquire_zeroed(sizeof(*gzip), EDDY_MEMORY_TRACE);
    /* Little effort: the writer has to keep up with the events. */
    if (gzip && deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, 9,
                             Z_DEFAULT_STRATEGY) != Z_OK) {
        eddy_memory_release(gzip, sizeof(*gzip), EDDY_MEMORY_TRACE);
        gzip = NULL;
    }
    *made = gzip;
    return gzip ? EDDY_OK : eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
}

static void run(eddy_gzip *gzip, int flush, eddy_gzip_write *write, void *context) {
    do {
        gzip->stream.next_out = (Bytef *)gzip->out;
        gzip->stream.avail_out = OUT_BYTES;
        (void)deflate(&gzip->stream, flush);
        write(context, gzip->out, OUT_BYTES - gzip->stream.avail_out);
    } while (gzip->stream.avail_out == 0);
}

void eddy_gzip_put(eddy_gzip *gzip, const char *bytes, size_t count, bool is_whole,
                   eddy_gzip_write *write, void *context) {
    gzip->stream.next_in = (z_const Bytef *)bytes;
    gzip->stream.avail_in = (uInt)count;
    run(gzip, is_whole ? Z_SYNC_FLUSH : Z_NO_FLUSH, write, context);
}

void eddy_gzip_end(eddy_gzip *gzip, eddy_gzip_write *write, void *context) {
    run(gzip, Z_FINISH, write, context);
}

void eddy_gzip_free(eddy_gzip *gzip) {
    if (gzip)
        (void)deflateEnd(&gzip->stream);
    eddy_memory_release(gzip, sizeof(*gzip), EDDY_MEMORY_TRACE);
}
