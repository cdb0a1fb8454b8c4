/* What a recorded function reads on the host: a guard (guard.h), or what keeps it from being replayed.
 *
 * A replay does not run the function's code, so that what this makes of a value in the midst of the call would not happen again.
 *
 * Thread: the recording one's only. */
#ifndef EDDY_PROGRAM_HOST_READ_H
#define EDDY_PROGRAM_HOST_READ_H

#include <program/recording.h>

/* The recorder's `read`. */
void eddy_host_read_record(eddy_recorder *recorder, const eddy_tensor *tensor, eddy_origin origin,
                           bool is_of_elements);
/* The reads that are no guards, as a sentence with what to do instead. */
void eddy_host_read_describe(const eddy_recording *recording, char *text, size_t size);

#endif
