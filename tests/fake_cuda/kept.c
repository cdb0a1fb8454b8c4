/* A file has the identity, and behind it the object. It is named by the text alone: what is outdated is overwritten, so that the folder does not grow with each build. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tests/fake_cuda/file.h>
#include <tests/fake_cuda/kept.h>

#define PATH_BYTES 4096

/* FNV-1a. */
static uint64_t digest_of(const char *text) {
    uint64_t digest = UINT64_C(14695981039346656037);
    for (; *text; text++)
        digest = (digest ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return digest;
}

static void path_of(const char *text, char *path) {
    snprintf(path, PATH_BYTES, "%s/%016" PRIx64, FAKE_NVRTC_KEPT, digest_of(text));
}

char *fake_kept_find(const char *text, const char *identity, size_t identity_bytes, size_t *bytes) {
    char path[PATH_BYTES];
    path_of(text, path);
    size_t count = 0;
    char *kept = fake_file_read(path, &count), *object = NULL;
    if (kept && count > identity_bytes && memcmp(kept, identity, identity_bytes) == 0) {
        *bytes = count - identity_bytes;
        object = malloc(*bytes);
        memcpy(object, kept + identity_bytes, *bytes);
    }
    free(kept);
    return object;
}

void fake_kept_add(const char *text, const char *identity, size_t identity_bytes,
                   const char *object, size_t bytes) {
    char path[PATH_BYTES];
    path_of(text, path);
    (void)mkdir(FAKE_NVRTC_KEPT, 0777);
    char *both = malloc(identity_bytes + bytes);
    memcpy(both, identity, identity_bytes);
    memcpy(both + identity_bytes, object, bytes);
    (void)fake_file_write(path, both, identity_bytes + bytes);
    free(both);
}
