/* base/trace.h: a listener is added, removed, and its place given to the next one, while two threads send events.
 *
 * Asserted: nobody is called whose removal has returned; whoever hears an end has heard that event's begin; who has heard a begin hears its end, unless its removal had begun. */
#ifndef LISTENERS
#define LISTENERS 2 /* one after the other, in one place */
#endif
#ifndef EVENTS
#define EVENTS 2
#endif

bool is_active;
byte generation;
byte at;       /* const while it is active: the generation of the place's listener */
byte inside;
byte leaving, gone; /* ghosts: generations up to which removal has begun, has returned */

active proctype owner()
{
    byte n;
    do
    :: n < LISTENERS ->
        n++;
        at = n; /* nobody reads it: the place is free */
        generation = n;
        is_active = true;
        if /* it is removed at once, or later */
        :: true -> skip
        :: true -> skip
        fi;
#ifdef BUG_LOOKS_BEFORE_IT_CHANGES
        (inside == 0);
        leaving = n;
        is_active = false;
#else
        atomic { leaving = n; is_active = false };
        (inside == 0);
#endif
        gone = n
    :: n == LISTENERS -> break
    od
}

/* What a sender does for the place; `heard`: of the begin, 0 if nobody did. */
inline call(by, is_end)
{
    called = 0;
    if
    :: is_active ->
#ifdef BUG_NO_SECOND_LOOK
        inside++;
        if
        :: true ->
#else
        inside++;
        if
        :: is_active ->
#endif
            seen = at;
#ifdef BUG_GENERATION_IS_NOT_LOOKED_AT
            if
            :: true ->
#else
            if
            :: seen <= by ->
#endif
                assert(gone < seen);
                assert(!is_end || seen == heard);
                called = seen
            :: else -> skip
            fi;
        :: else -> skip
        fi;
#ifdef BUG_LEAVES_BEFORE_IT_HAS_CALLED
        inside--;
        assert(called == 0 || gone < called)
#else
        assert(called == 0 || gone < called);
        inside--
#endif
    :: else -> skip
    fi
}

active [2] proctype sender()
{
    byte event, now, heard, called, seen;
    do
    :: event < EVENTS ->
        event++;
        now = generation;
        call(now, false);
        heard = called;
        if
        :: heard != 0 ->
            call(now, true);
            assert(called == heard || leaving >= heard)
        :: else -> skip
        fi;
        heard = 0; called = 0; seen = 0; now = 0
    :: event == EVENTS -> break
    od
}
