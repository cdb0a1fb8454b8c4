/* Section 7: calls of a device that are left to its launcher while that is awake. Issuers publish records under L. One of calls leaves them to a launcher that attends, and requests the role
 * otherwise; one of other instructions always requests it. The launcher takes the role when it has nothing to launch, and gives it up as soon as it has. A launch may last until all
 * instructions of the host are over: it may wait for one of them. In every run everything is over in the end, or the verifier reports an invalid end state. (E as in wake.pml, from which the
 * scheduler thread's order of falling asleep is taken as one step.) */
#include "primitives.pml"

#ifndef CALLS
#define CALLS 2
#endif
#ifndef OTHERS
#define OTHERS 1
#endif

bool L;
byte E; /* 0 free, 1 as the holder has seen it, 2 requested since */
bool attends;
byte left_calls, asked_calls, others; /* in the ring: left to the launcher, or its issuer asks for them */
byte dispatched; /* to the launcher */
byte launched, done; /* calls; others */
byte complete; /* calls that the launcher has not taken the role for */
bool launcher_sleeps;
bool is_poked; /* the scheduler thread */

/* Takes one thing. */
inline engine_round()
{
    found = false;
    if
    :: atomic { left_calls > 0 -> left_calls--; found = true; dispatched++; FUTEX_WAKE(launcher_sleeps) }
    :: atomic { asked_calls > 0 -> asked_calls--; found = true; dispatched++; FUTEX_WAKE(launcher_sleeps) }
    :: atomic { others > 0 -> others--; found = true; done++ }
    :: left_calls == 0 && asked_calls == 0 && others == 0
    fi
}

inline request()
{
    atomic {
        if
        :: E == 0 -> E = 1; takes_role = true
        :: E != 0 -> E = 2; takes_role = false
        fi
    }
}

/* Until nothing is left. */
inline hold_role()
{
    do
    :: engine_round();
        if
        :: found
        :: atomic { !found && E == 1 -> E = 0; break }
        :: atomic { !found && E == 2 -> E = 1 }
        fi
    od
}

/* The same, but for the launcher: it leaves when there is something to launch, or nothing more is left to it. Then the scheduler thread does the rest; but where it comes back after the launch, only if
 * somebody has asked. */
inline take_turn()
{
    was_asked = false;
    do
    :: engine_round();
        if
        :: atomic { dispatched > 0 ->
#ifndef BUG_FORGETS_WHO_ASKED
            was_asked = was_asked || E == 2;
#else
            was_asked = E == 2;
#endif
            E = 0 };
            if
#ifndef BUG_LEAVES_WHAT_WAS_ASKED_FOR
            :: was_asked -> is_poked = true
            :: !was_asked
#else
            :: skip
#endif
            fi;
            break
        :: dispatched == 0 && found
        :: atomic { dispatched == 0 && found && left_calls == 0 -> E = 0 };
#ifndef BUG_TURN_ENDS_IN_SILENCE
            is_poked = true;
#endif
            break
        :: atomic { dispatched == 0 && !found && E == 1 -> E = 0; break }
        :: atomic { dispatched == 0 && !found && E == 2 -> E = 1; was_asked = true }
        fi
    od
}

active proctype launcher()
{
    bool found, takes_role, was_asked;
    attends = true;
    do
    :: atomic { dispatched > 0 -> dispatched-- };
#ifdef LONG
        done == OTHERS; /* such a launch */
#endif
        atomic { launched++; complete++ }
    :: dispatched == 0 ->
        if
        :: atomic { complete > 0 -> complete = 0 }; request();
            if
            :: takes_role -> take_turn()
            :: !takes_role
            fi
        :: left_calls > 0 && E == 0 -> request();
            if
            :: takes_role -> take_turn()
            :: !takes_role
            fi
        :: left_calls == 0 || E != 0 -> /* or it has looked for long enough */
#ifdef BUG_LOOKS_BEFORE_IT_SAYS_SO
            if
            :: left_calls > 0 -> request();
                if
                :: takes_role -> take_turn()
                :: !takes_role
                fi
            :: left_calls == 0
            fi;
#endif
            atomic { !L -> L = true };
            attends = false;
            L = false;
#if !defined(BUG_NO_SECOND_LOOK) && !defined(BUG_LOOKS_BEFORE_IT_SAYS_SO)
            if
            :: left_calls > 0 ->
#ifdef BUG_SECOND_LOOK_ASKS_NOBODY /* "who has the role will see it" */
                if
                :: E != 0 -> takes_role = false
                :: E == 0 -> request()
                fi;
#else
                request();
#endif
                if
                :: takes_role -> attends = true; take_turn(); goto awake
                :: !takes_role
                fi
            :: left_calls == 0
            fi;
#endif
            atomic {
                if
                :: dispatched == 0 -> launcher_sleeps = true
                :: else -> skip
                fi };
end:        !launcher_sleeps;
            attends = true
        fi;
awake:  skip
    od
}

active proctype scheduler()
{
    bool found, takes_role;
end:
    do
    :: atomic { is_poked -> is_poked = false };
        request();
        if
        :: takes_role -> hold_role()
        :: !takes_role
        fi
    od
}

/* Its turn may be over after any round: it gives the role up with work left, and says so. */
inline drive()
{
    request();
    if
    :: takes_role ->
        if
        :: hold_role()
        :: engine_round(); E = 0; is_poked = true
        fi
    :: !takes_role
    fi
}

active proctype issuer_of_calls()
{
    byte left = CALLS;
    bool found, takes_role, is_left;
    do
    :: left > 0 ->
#ifdef BUG_ASKS_BEFORE_IT_WRITES /* whether it attends, outside of the lock */
        is_left = attends;
        atomic { !L -> L = true };
#else
        atomic { !L -> L = true };
        is_left = attends;
#endif
        if
        :: atomic { is_left -> left_calls++ }
        :: atomic { is_left -> asked_calls++; is_left = false } /* many have been left */
        :: atomic { !is_left -> asked_calls++ }
        fi;
        L = false;
        if
        :: !is_left -> drive()
        :: is_left
        fi;
        left--
    :: left == 0 -> break
    od
}

active proctype issuer_of_others()
{
    byte left = OTHERS;
    bool found, takes_role;
    do
    :: left > 0 ->
        atomic { !L -> L = true; others++ };
        L = false;
        drive();
        left--
    :: left == 0 -> break
    od
}

active proctype observer()
{
    launched == CALLS && done == OTHERS
}
