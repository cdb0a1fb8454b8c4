/* Tensors in files.
 *
 * .npy is numpy's format for one array (NEP 1, versions 1 to 3 are read, 1 is written); .npz is a zip archive of them, as numpy.savez
 * and numpy.savez_compressed write it. .safetensors is the format of huggingface/safetensors: a header in JSON that names the tensors,
 * then their elements; nothing in it is ever executed.
 *
 * A save blocks until the elements are computed (TIMED_OUT) and returns earlier errors. A file is replaced as a whole or not at
 * all: it is written under another name, synced to the disk, and then renamed. A load reads the file before it returns, each
 * tensor straight to its memory; the sizes that a file states are checked before memory is allocated for them. Any thread, but no
 * callback. Errors besides those of reading a tensor: IO (with the path and the reason), UNSUPPORTED (an element type that the
 * format, or Eddy, does not have), SIZE_OVERFLOW, OUT_OF_MEMORY. docs/files.md says more. */
#ifndef EDDY_FILE_H
#define EDDY_FILE_H

#include <eddy/export.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one array ---- */

typedef struct eddy_npy_save_options {
    size_t size;     /* of this struct; EDDY_OPTIONS fills it in */
    int64_t timeout; /* ns that the call may wait for the elements; 0: no limit */
} eddy_npy_save_options;

/* The format has no bf16. */
EDDY_API eddy_status eddy_npy_save(eddy_tensor *tensor, const char *path,
                                   const eddy_npy_save_options *options);

/* A new contiguous tensor with the array's elements; arrays in Fortran order or of the other byte order are converted. */
EDDY_API eddy_tensor *eddy_npy_load(const char *path);

/* ---- tensors by name ---- */

/* A pair of texts that a file carries beside its tensors. */
typedef struct eddy_metadata {
    const char *key, *value;
} eddy_metadata;

/* The contents of a file, in its order. The caller owns it and gives it to eddy_archive_release. The archive holds a reference of each
 * tensor (no scope does); eddy_retain takes one that outlives it. The archive owns the texts and arrays. Read only: any thread. */
typedef struct eddy_archive {
    int64_t count;
    const char *const *names;
    eddy_tensor *const *tensors;
    int64_t metadata_count;
    const eddy_metadata *metadata;
} eddy_archive;

/* The tensor of that name, borrowed: valid while the archive is. NULL with NOT_FOUND. */
EDDY_API eddy_tensor *eddy_archive_tensor(const eddy_archive *archive, const char *name);
/* Writes the tensors of these names into `targets`, names[i] into targets.items[i], for example from a checkpoint. Each must exist
 * (NOT_FOUND) and have its target's shape and dtype exactly (SHAPE_MISMATCH, DTYPE_MISMATCH); all are checked before anything is
 * written. Targets may be leaves; nothing is recorded. Issues ops: returns at once. */
EDDY_API eddy_status eddy_archive_copy_into(const eddy_archive *archive, const char *const *names,
                                            eddy_list targets);
/* The metadata's value, borrowed; NULL, and no error, if there is none. */
EDDY_API const char *eddy_archive_value(const eddy_archive *archive, const char *key);
/* Gives up the archive and its references, and clears the pointer; NULL does nothing. Never blocks. */
EDDY_API void eddy_archive_release(eddy_archive **archive);

/* ---- safetensors ---- */

typedef struct eddy_safetensors_save_options {
    size_t size; /* of this struct; EDDY_OPTIONS fills it in */
    const eddy_metadata *metadata;
    int64_t metadata_count;
    int64_t timeout; /* ns that the call may wait for the elements; 0: no limit */
} eddy_safetensors_save_options;

/* Writes tensors[i] as names[i]: UTF-8, each once, not "__metadata__" (INVALID_ARGUMENT). Any dtype. */
EDDY_API eddy_status eddy_safetensors_save(eddy_list tensors, const char *const *names,
                                           const char *path,
                                           const eddy_safetensors_save_options *options);
/* NULL on failure. */
EDDY_API eddy_archive *eddy_safetensors_load(const char *path);
/* A new tensor: the one of that name; the others are not read. NOT_FOUND. */
EDDY_API eddy_tensor *eddy_safetensors_load_one(const char *path, const char *name);

/* ---- npz ---- */

typedef struct eddy_npz_save_options {
    size_t size;
    int64_t timeout; /* ns that the call may wait for the elements; 0: no limit */
} eddy_npz_save_options;

/* Writes tensors[i] as the array names[i], uncompressed; each name once, of 1 to 60,000 bytes, UTF-8 (INVALID_ARGUMENT). No bf16. */
EDDY_API eddy_status eddy_npz_save(eddy_list tensors, const char *const *names, const char *path,
                                   const eddy_npz_save_options *options);
/* All arrays, deflated or not; a member of another kind is an error. NULL on failure. */
EDDY_API eddy_archive *eddy_npz_load(const char *path);
/* A new tensor: the array of that name; the others are not read. NOT_FOUND. */
EDDY_API eddy_tensor *eddy_npz_load_one(const char *path, const char *name);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_npy_save(...) EDDY_AT_CALL_SITE(eddy_npy_save(__VA_ARGS__))
#define eddy_npy_load(...) EDDY_AT_CALL_SITE(eddy_npy_load(__VA_ARGS__))
#define eddy_archive_tensor(...) EDDY_AT_CALL_SITE(eddy_archive_tensor(__VA_ARGS__))
#define eddy_archive_copy_into(...) EDDY_AT_CALL_SITE(eddy_archive_copy_into(__VA_ARGS__))
#define eddy_safetensors_save(...) EDDY_AT_CALL_SITE(eddy_safetensors_save(__VA_ARGS__))
#define eddy_safetensors_load(...) EDDY_AT_CALL_SITE(eddy_safetensors_load(__VA_ARGS__))
#define eddy_safetensors_load_one(...) EDDY_AT_CALL_SITE(eddy_safetensors_load_one(__VA_ARGS__))
#define eddy_npz_save(...) EDDY_AT_CALL_SITE(eddy_npz_save(__VA_ARGS__))
#define eddy_npz_load(...) EDDY_AT_CALL_SITE(eddy_npz_load(__VA_ARGS__))
#define eddy_npz_load_one(...) EDDY_AT_CALL_SITE(eddy_npz_load_one(__VA_ARGS__))
#endif
#endif
