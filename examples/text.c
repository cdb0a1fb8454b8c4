#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes read so far: [0] training, [1] held out. */
typedef struct reader {
    unsigned char *bytes[2];
    size_t counts[2], rooms[2];
    char *complaint;
    size_t complaint_size;
} reader;

static bool complain(const reader *r, const char *path, const char *what) {
    snprintf(r->complaint, r->complaint_size, "%s: %s", path, what);
    return false;
}

static bool append(reader *r, int part, const unsigned char *bytes, size_t count,
                   const char *path) {
    size_t room = r->rooms[part] ? r->rooms[part] : 65536;
    while (room < r->counts[part] + count)
        room *= 2;
    unsigned char *larger = room > r->rooms[part] ? realloc(r->bytes[part], room) : r->bytes[part];
    if (!larger)
        return complain(r, path, "no memory");
    r->bytes[part] = larger;
    r->rooms[part] = room;
    memcpy(larger + r->counts[part], bytes, count);
    r->counts[part] += count;
    return true;
}

static bool read_file(reader *r, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return complain(r, path, strerror(errno));
    unsigned char *bytes = NULL;
    size_t count = 0, room = 0;
    for (;;) {
        if (count == room) {
            room = room ? 2 * room : 65536;
            unsigned char *larger = realloc(bytes, room);
            if (!larger)
                break;
            bytes = larger;
        }
        size_t got = fread(bytes + count, 1, room - count, file);
        count += got;
        if (got == 0)
            break;
    }
    bool is_fine = feof(file) && !ferror(file);
    fclose(file);
    size_t training = count - count / 10;
    is_fine = is_fine ? append(r, 0, bytes, training, path) &&
                            append(r, 1, bytes + training, count - training, path)
                      : complain(r, path, "cannot be read");
    free(bytes);
    return is_fine;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads regular files in the order of their names. Skips symbolic links: Debian's folder of licences has links to its own files. */
static bool read_folder(reader *r, const char *path) {
    struct dirent **names;
    int count = scandir(path, &names, NULL, by_name);
    if (count < 0)
        return complain(r, path, strerror(errno));
    bool is_fine = true;
    for (int i = 0; i < count; i++) {
        char whole[4096];
        struct stat info;
        int length = snprintf(whole, sizeof(whole), "%s/%s", path, names[i]->d_name);
        if (is_fine && length < (int)sizeof(whole) && lstat(whole, &info) == 0 &&
            S_ISREG(info.st_mode))
            is_fine = read_file(r, whole);
        free(names[i]);
    }
    free(names);
    return is_fine;
}

static bool read_all(reader *r, char *const *paths, int path_count) {
    for (int i = 0; i < path_count; i++) {
        struct stat info;
        if (stat(paths[i], &info) != 0)
            return complain(r, paths[i], strerror(errno));
        if (!(S_ISDIR(info.st_mode) ? read_folder(r, paths[i]) : read_file(r, paths[i])))
            return false;
    }
    return true;
}

static void number_bytes(const reader *r, struct text *result, int numbers[256]) {
    bool is_there[256] = {false};
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < r->counts[part]; i++)
            is_there[r->bytes[part][i]] = true;
    for (int byte = 0; byte < 256; byte++) {
        numbers[byte] = (int)result->vocabulary;
        if (is_there[byte])
            result->bytes[result->vocabulary++] = (unsigned char)byte;
    }
}

static bool make_tensors(const reader *r, struct text *result, const char *path) {
    int numbers[256];
    number_bytes(r, result, numbers);
    for (int part = 0; part < 2; part++) {
        int64_t *values = malloc((r->counts[part] + 1) * sizeof(*values));
        if (!values)
            return complain(r, path, "no memory");
        for (size_t i = 0; i < r->counts[part]; i++)
            values[i] = numbers[r->bytes[part][i]];
        result->counts[part] = (int64_t)r->counts[part];
        result->numbers[part] =
            eddy_from_data(values, EDDY_SHAPE(result->counts[part]), EDDY_I64, NULL);
        free(values);
        if (!result->numbers[part])
            return complain(r, path, "cannot be made a tensor");
    }
    return true;
}

bool text_read(char *const *paths, int path_count, struct text *result, char *complaint,
               size_t complaint_size) {
    reader r = {.complaint = complaint, .complaint_size = complaint_size};
    *result = (struct text){0};
    bool is_fine = read_all(&r, paths, path_count) && make_tensors(&r, result, paths[0]);
    free(r.bytes[0]);
    free(r.bytes[1]);
    return is_fine;
}

void text_free(struct text *text) {
    eddy_release(&text->numbers[0]);
    eddy_release(&text->numbers[1]);
}
