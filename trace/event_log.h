/* Events (base/trace.h) as lines of the log: what the library does, instruction by instruction, by room and level.
 *
 * Without a sink of the program's a line is written to stderr where it happens. A program's sink is code that may wait for anything, and an event may be raised under a lock of the library: its lines are queued, and a
 * thread of the log delivers them; where they come faster, they are dropped and counted. */
#ifndef EDDY_TRACE_EVENT_LOG_H
#define EDDY_TRACE_EVENT_LOG_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Enumerator, name: what level 1 tells; what level 2 tells besides. */
#define EDDY_LOG_ROOM_LIST(row)                                                                    \
    row(INTERPRETER, interpreter) /* calls and their instructions; inference, copies */            \
        row(PROGRAM, program)     /* runs */                                                       \
        row(STREAMS, streams) /* memory that was refused or given back; taken; slices; devices */  \
        row(VM, vm)           /* kernels, waits, poison; edges, readiness, releases */

typedef enum eddy_log_room {
#define EDDY_LOG_ROOM_ROW(enumerator, name) EDDY_LOG_##enumerator,
    EDDY_LOG_ROOM_LIST(EDDY_LOG_ROOM_ROW)
#undef EDDY_LOG_ROOM_ROW
        EDDY_LOG_ROOM_COUNT
} eddy_log_room;

#define EDDY_LOG_LEVEL_MOST 2

/* "vm:2,interpreter:1" as levels, 0 for rooms that are not named. has_words: other words (base/log.h) are passed over. INVALID_ARGUMENT, recorded, for what is no room and level; `from` names the option. */
EDDY_MUST_USE eddy_status eddy_event_log_parse(const char *text, bool has_words, const char *from,
                                               eddy_origin origin,
                                               uint8_t levels[EDDY_LOG_ROOM_COUNT]);
/* From now on. Any thread. OUT_OF_MEMORY, INTERNAL (no thread), recorded. */
EDDY_MUST_USE eddy_status eddy_event_log_set(const uint8_t levels[EDDY_LOG_ROOM_COUNT],
                                             eddy_origin origin);
/* At exit: what is queued is delivered, until the deadline. */
void eddy_event_log_end(int64_t deadline_ns);

#endif
