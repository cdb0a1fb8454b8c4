/* What a program is run on: arrays of files, or else random ones. */
#ifndef TOOLS_EDDY_RUN_FEEDS_H
#define TOOLS_EDDY_RUN_FEEDS_H

#include "command.h"

#include <eddy/program.h>

/* An input. Its elements are kept here where runs take or lay out memory of their own. */
typedef struct run_feed {
    eddy_program_binding_info binding;
    const char *path;    /* NULL: random */
    eddy_tensor *tensor; /* NULL while there is none */
    void *data;          /* row-major; NULL: the tensor is given to all runs */
    size_t bytes;
} run_feed;

/* The path of "NAME=PATH" that an option gives for each of these bindings, NULL where it gives none. False: it names another, or one
 * twice, which is told. */
bool run_paths(const tool_arguments *arguments, const char *option,
               const eddy_program_binding_info *bindings, int64_t count, const char **paths);

/* "f32[2, 3]". */
void run_format_shape(eddy_dtype dtype, const eddy_shape *shape, char *buffer, size_t size);

/* False: it has said why not. */
bool run_feed_make(const tool_arguments *arguments, run_feed *feed);
/* Before each run: a donated input is made anew. */
bool run_feed_renew(const tool_arguments *arguments, run_feed *feed);
void run_feed_free(run_feed *feed);

/* Its memory is the runs': it has to be renewed. */
bool run_feed_is_donated(const run_feed *feed);
/* It is given as elements, since its strides are no row-major tensor's. */
bool run_feed_is_data(const run_feed *feed);

#endif
