#include "checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 48
#define CHARACTERS "characters"

bool checkpoint_can_be_saved(const char *path) {
    char beside[4096];
    struct stat there;
    bool is_folder = stat(path, &there) == 0 && S_ISDIR(there.st_mode);
    int length = snprintf(beside, sizeof(beside), "%s.XXXXXX", path), file = -1;
    if (is_folder)
        errno = EISDIR;
    else if (length >= (int)sizeof(beside))
        errno = ENAMETOOLONG;
    else
        file = mkstemp(beside);
    if (file < 0) {
        fprintf(stderr, "char_transformer: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    close(file);
    unlink(beside);
    return true;
}

bool checkpoint_save(const transformer *net, const struct text *text, int64_t step, double loss,
                     const char *path) {
    eddy_tensor *tensors[TRANSFORMER_PARAMETERS_MAX + 1];
    const char *names[TRANSFORMER_PARAMETERS_MAX + 1];
    char texts[TRANSFORMER_PARAMETERS_MAX][NAME_BYTES], step_text[24], loss_text[32];
    for (int64_t i = 0; i < net->count; i++) {
        transformer_name(net, i, texts[i], NAME_BYTES);
        names[i] = texts[i];
        tensors[i] = net->parameters[i];
    }
    snprintf(step_text, sizeof(step_text), "%lld", (long long)step);
    snprintf(loss_text, sizeof(loss_text), "%.3f", loss);
    const eddy_metadata pairs[] = {{"step", step_text}, {"validation_loss", loss_text}};
    eddy_scope *scope = eddy_scope_begin();
    names[net->count] = CHARACTERS;
    tensors[net->count] = eddy_from_data(text->bytes, EDDY_SHAPE(text->vocabulary), EDDY_U8, NULL);
    eddy_status status = eddy_safetensors_save(
        (eddy_list){tensors, net->count + 1}, names, path,
        EDDY_OPTIONS(safetensors_save, .metadata = pairs, .metadata_count = 2));
    eddy_scope_end(scope);
    return status == EDDY_OK;
}

static bool has_same_characters(const eddy_archive *archive, const struct text *text) {
    unsigned char bytes[256];
    eddy_tensor *known = eddy_archive_tensor(archive, CHARACTERS);
    return known && eddy_count_of(known) == text->vocabulary &&
           eddy_read(known, bytes, (size_t)text->vocabulary, NULL) == EDDY_OK &&
           memcmp(bytes, text->bytes, (size_t)text->vocabulary) == 0;
}

bool checkpoint_load(transformer *net, const struct text *text, const char *path) {
    eddy_archive *archive = eddy_safetensors_load(path);
    bool is_fine = archive && has_same_characters(archive, text);
    if (archive && !is_fine)
        fprintf(stderr, "char_transformer: %s knows other characters than this text\n", path);
    eddy_no_grad_begin();
    for (int64_t i = 0; i < net->count && is_fine; i++) {
        char name[NAME_BYTES];
        transformer_name(net, i, name, sizeof(name));
        eddy_tensor *weights = eddy_archive_tensor(archive, name);
        is_fine = weights && eddy_copy_into(weights, net->parameters[i]) == EDDY_OK;
    }
    eddy_no_grad_end();
    eddy_archive_release(&archive);
    return is_fine;
}
