/* What a recorded function reads on the host: a guard (guard.h), if it was there before the call; a mark on its path (path.h), if its calls have computed it; or what keeps
 * it from being replayed.
 *
 * A replay does not run the function's code, so that what this makes of a value in the midst of the call would not happen again: it decides which program is replayed.
 *
 * Thread: the recording one's only. */
#ifndef EDDY_PROGRAM_HOST_READ_H
#define EDDY_PROGRAM_HOST_READ_H

#include <program/recording.h>

#define EDDY_HOST_READ_INSTEAD                                                                     \
    "give it out and read it after the call, or decide with eddy_cond or eddy_where"

/* The recorder's `read`. */
eddy_tensor *eddy_host_read_record(eddy_recorder *recorder, eddy_tensor *tensor,
                                   const eddy_recorder_reading *reading);
/* The reads that are neither, as a sentence with what to do instead. */
void eddy_host_read_describe(const eddy_recording *recording, char *text, size_t size);

#endif
