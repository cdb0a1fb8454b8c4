/* Images of kernels on disk, by a digest of what they were made of: one folder of the user's, which all processes share.
 *
 *   <folder>/<digest>.image      head (magic, key, bytes, checksum), then the image
 *
 * A file is written under another name and renamed, so that nobody reads half of one; who reads takes only a regular file of the user's own that nobody else may write, and whose checksum
 * holds: any other is removed, and the image made again. Where the folder cannot be made, read or written there is no cache, which is no error. Any thread, any process. */
#ifndef EDDY_STREAMS_IMAGE_CACHE_H
#define EDDY_STREAMS_IMAGE_CACHE_H

#include <base/hash.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the files of a folder; beyond them those go that were used least recently. */
#define EDDY_IMAGE_CACHE_BYTES (INT64_C(64) << 20)
/* As EDDY_CACHE_DIR: no folder. */
#define EDDY_IMAGE_CACHE_NONE "none"

/* The folder of an option's value: that value, or by default $XDG_CACHE_HOME/eddy, else ~/.cache/eddy. False: there is none. */
bool eddy_image_cache_folder(const char *option, char *folder, size_t size);

/* The image of the key, acquired with EDDY_MEMORY_CACHE; NULL: there is none. It counts as used. */
void *eddy_image_cache_find(const char *folder, eddy_digest key, size_t *bytes);
/* Makes the folder where it is not there, for the user alone. */
void eddy_image_cache_keep(const char *folder, eddy_digest key, const void *image, size_t bytes);
/* Removes what was used least recently until all files have `most` bytes, and what processes have left behind that ended while they wrote. */
void eddy_image_cache_trim(const char *folder, int64_t most);

#endif
