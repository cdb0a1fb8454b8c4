/* Tensors by name, from a file or for one. */
#ifndef EDDY_EXCHANGE_ARCHIVE_H
#define EDDY_EXCHANGE_ARCHIVE_H

#include <base/call_site.h>
#include <eddy/file.h>
#include <interpreter/host/file.h>
#include <stdbool.h>

/* An empty archive. NULL with the error recorded. */
eddy_archive *eddy_archive_create(const eddy_file *file);
/* Takes the reference that the public call which made `tensor` returned, also on failure. Both: false with the error recorded. */
EDDY_MUST_USE bool eddy_archive_add(const eddy_file *file, eddy_archive *archive, const char *name,
                                    eddy_tensor *tensor);
EDDY_MUST_USE bool eddy_archive_add_metadata(const eddy_file *file, eddy_archive *archive,
                                             const char *key, const char *value);

/* Whether a list and its names may be saved: no NULL, shapes known, no name twice. */
EDDY_MUST_USE eddy_status eddy_archive_check(eddy_list tensors, const char *const *names,
                                             int64_t deadline, eddy_origin origin);
/* Sorts names (pointers) and returns one that occurs twice, or NULL. */
const char *eddy_archive_twice(const char **names, int64_t count);

#endif
