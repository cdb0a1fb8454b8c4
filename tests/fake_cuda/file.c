#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <tests/fake_cuda/file.h>
#include <unistd.h>

char *fake_file_read(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file)
        return NULL;
    if (fstat(fileno(file), &status) != 0) {
        fclose(file);
        return NULL;
    }
    char *text = calloc(1, (size_t)status.st_size + 1);
    *bytes = fread(text, 1, (size_t)status.st_size, file);
    fclose(file);
    return text;
}

bool fake_file_write(const char *path, const char *bytes, size_t count) {
    char own[4096];
    snprintf(own, sizeof(own), "%s.XXXXXX", path);
    int file = mkstemp(own);
    if (file < 0)
        return false;
    bool is_written = write(file, bytes, count) == (ssize_t)count;
    is_written = close(file) == 0 && is_written && rename(own, path) == 0;
    if (!is_written)
        (void)unlink(own);
    return is_written;
}
