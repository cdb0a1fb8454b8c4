/* Tensors as text, in numpy's style:
 *
 *   [[1.    , 2.5   ],
 *    [3.    , 4.    ]]  f32[2, 2]
 *
 * Above `threshold` elements each axis shows only its first and last `edge_items`. Both functions block until the
 * elements are computed and return earlier errors (see <eddy/host.h>). Of a large tensor on a device those that are shown are
 * copied some at a time: ops of other threads that write the tensor may come in between. Any thread. */
#ifndef EDDY_PRINT_H
#define EDDY_PRINT_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_format_options {
    size_t size;
    bool has_precision;
    int32_t precision;  /* digits after the point, 0 to 17, if has_precision is set; else 4 */
    int64_t threshold;  /* elements above which the middle is left out; 0: 1000 */
    int32_t edge_items; /* elements shown at each end of an axis then; 0: 3 */
    int32_t line_width; /* columns; 0: 80 */
    bool omits_tail;    /* without dtype and shape after the elements */
    int64_t timeout;    /* ns that the call may wait; 0: no limit */
} eddy_format_options;

/* Writes at most size bytes, a final 0 included, and returns the length of the whole text as snprintf does;
 * negative on failure. buffer may be NULL if size is 0. */
EDDY_API int64_t eddy_format(eddy_tensor *tensor, char *buffer, size_t size,
                             const eddy_format_options *options);

/* Writes the same text with the default options and a newline to `file`; NULL: line by line to the log sink. If the
 * tensor is NULL or holds an error, the error's message is written instead, and the error stays in the slot. */
EDDY_API eddy_status eddy_print(eddy_tensor *tensor, FILE *file);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_format(...) EDDY_AT_CALL_SITE(eddy_format(__VA_ARGS__))
#define eddy_print(...) EDDY_AT_CALL_SITE(eddy_print(__VA_ARGS__))
#endif
#endif
