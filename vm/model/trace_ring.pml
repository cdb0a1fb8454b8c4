/* trace/README.md: threads append to rings, which outlive them, while a writer takes; then the trace is stopped.
 *
 * Asserted: the writer reads what was appended, in order, once; what was not dropped is read by the end; nobody touches a ring's lines once they are freed; the owner's range that
 * is still open is read when it lies still. */
#ifndef EVENTS
#define EVENTS 3
#endif
#define LINES 2
#define FREE 0
#define OWNED 1
#define LEFT 2

byte state, head, tail;   /* of the only ring, which the threads have one after the other, or one of them finds none */
byte line[LINES];         /* what was appended */
bool is_allocated = true;
byte open;                /* of the owner: a range that is open */

bool is_active = true;    /* the listener: base/trace.h, listener.pml */
byte inside;
bool is_stopping, has_ended;
byte appended, dropped, read_up_to, lost; /* ghosts */

inline append()
{
    if
#ifdef BUG_FULL_IS_NOT_LOOKED_AT
    :: true ->
#else
    :: head - tail < LINES ->
#endif
        assert(is_allocated);
#ifdef BUG_HEAD_BEFORE_LINE
        head++;
        appended++;
        line[(head - 1) % LINES] = appended
#else
        line[head % LINES] = appended + 1;
        atomic { appended++; head++ }
#endif
    :: else -> dropped++
    fi
}

proctype thread()
{
    byte event;
    bool is_owner;
    do
    :: event < EVENTS ->
        event++;
        inside++;
        if
        :: is_active ->
            if
            :: is_owner -> skip
            :: !is_owner ->
                atomic {
                    if
                    :: state == FREE -> state = OWNED; is_owner = true; open = 0
                    :: else -> lost++
                    fi
                }
            fi;
            if
            :: is_owner -> open = event; append(); open = 0
            :: else -> skip
            fi
        :: else -> skip
        fi;
        inside--
    :: event == EVENTS -> break
    :: event > 0 && event < EVENTS -> break
    od;
    if
    :: is_owner ->
        /* Its destructor. */
        state = LEFT
    :: else -> skip
    fi
}

inline take()
{
    byte seen, until;
#ifdef BUG_HEAD_BEFORE_STATE
    until = head;
    seen = state;
#else
    seen = state;
    until = head;
#endif
    do
    :: tail < until ->
        assert(is_allocated);
        assert(line[tail % LINES] == read_up_to + 1);
        atomic { read_up_to++; tail++ }
    :: else -> break
    od;
    if
    :: seen == LEFT ->
        assert(read_up_to == appended);
        assert(open == 0);
        state = FREE
    :: else -> skip
    fi
}

active proctype writer()
{
    bool is_last;
    do
    :: !is_last ->
        is_last = is_stopping;
        take()
    :: is_last -> break
    od;
    has_ended = true
}

active proctype stopper()
{
#ifdef BUG_WRITER_ENDS_FIRST
    is_stopping = true;
    (has_ended);
    is_active = false;
    (inside == 0);
#else
    is_active = false;
#ifndef BUG_NOBODY_WAITS_FOR_WHO_IS_INSIDE
    (inside == 0);
#endif
    is_stopping = true;
#ifndef BUG_FREES_UNDER_THE_WRITER
    (has_ended);
#endif
#endif
    is_allocated = false;
    (has_ended);
    assert(open == 0);
    assert(read_up_to == appended)
}

init
{
    run thread();
    run thread()
}
