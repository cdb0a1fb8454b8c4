/* Section 7: the engine word and the sleep of the scheduler thread (E1, E2). Issuers publish records under L; a
 * worker finishes what it was given and requests the role; a lender pushes without L and wakes; a waiter helps for
 * one round and hands the role on (with -DHELPER); with -DDRIVEN issuers look after their records themselves. In every run all that was pushed is retired, or the verifier
 * reports an invalid end state: somebody slept through it.
 *
 * Steps are sequentially consistent. BUG_ASLEEP_STORE_WAITS and BUG_PUSH_STORE_WAITS keep one store in a buffer
 * that is written out at any later time: what a weaker order than seq_cst would allow. */
#include "primitives.pml"

#ifndef ISSUERS
#define ISSUERS 2
#endif
#ifndef RECORDS
#define RECORDS 1 /* an issuer */
#endif
#define PUSHED (ISSUERS * RECORDS)

bool L;
byte E; /* 0 free, 1 as the holder has seen it, 2 requested since */
bool has_engine;
bool is_asleep;
bool is_word_new; /* wake_word was raised since the scheduler thread read it: all that futex looks at */
bool scheduler_sleeps; /* in the futex */
byte in_ring, at_workers, completions, retired;
bool lend_ended, lend_retired;
bool asleep_store_waits, push_store_waits;

inline engine_round()
{
    found = false;
    if
    :: atomic { in_ring > 0 -> found = true; in_ring--;
        if
        :: retired++ /* run by the engine */
        :: at_workers++
        fi }
    :: in_ring == 0
    fi;
    if
    :: atomic { completions > 0 -> found = true; completions--; retired++ }
    :: completions == 0
    fi;
    if
    :: atomic { lend_ended -> found = true; lend_ended = false; lend_retired = true }
    :: !lend_ended
    fi
}

inline request()
{
    atomic {
        if
        :: E == 0 -> assert(!has_engine); has_engine = true; takes_role = true;
            if
            :: E = 1
            :: E = 2 /* by the exchange: it was not free when it was looked at */
            fi
        :: E != 0 -> E = 2
        fi
    }
}

/* Looks at the sources without the role: nothing that only the holder may touch. */
inline peek()
{
#ifdef BUG_TAKEN_ROLE_MEANS_NO_WORK /* "who has the role will see it" */
    if
    :: E != 0 -> found = false
    :: E == 0 -> found = in_ring > 0
    fi;
#else
    found = in_ring > 0;
#endif
    found = found || completions > 0;
    found = found || lend_ended
}

inline hold_role()
{
    do
    :: engine_round();
        if
        :: found -> peek() /* whether there is more */
        :: !found
        fi;
        if
        :: atomic { found -> found = false }
        :: atomic { !found && E == 1 -> E = 0; has_engine = false; takes_role = false; break }
        :: atomic { !found && E == 2 -> E = 1 } /* the cas failed: seen is the newer count */
        fi
    od
}

inline wake_scheduler()
{
    is_word_new = true;
    if
    :: is_asleep -> FUTEX_WAKE(scheduler_sleeps)
    :: !is_asleep
    fi
}

/* The order in which the scheduler thread falls asleep: wake_word read, flag set under L, sources looked at, slept on
 * the word as read. An issuer that wakes clears the flag and raises the word after: were the word read after the flag
 * is set, and a helper has taken the record, neither the sources nor the word would tell that the flag is gone. */

active proctype scheduler()
{
    bool found, takes_role;
    do
    :: peek();
        if
        :: atomic { found && E == 0 -> found = false }; request();
            if
            :: takes_role -> hold_role()
            :: !takes_role
            fi
        :: atomic { !found || E != 0 -> found = false };
#if !defined(BUG_WAKE_WORD_READ_AFTER_LOOK) && !defined(BUG_WAKE_WORD_READ_AFTER_FLAG) && !defined(BUG_WAKE_WORD_READ_AFTER_ASKING)
            is_word_new = false;
#endif
            atomic { !L -> L = true };
#ifdef BUG_ASLEEP_STORE_WAITS
            asleep_store_waits = true; /* its unlock waits behind it in the buffer */
#else
            is_asleep = true;
            L = false;
#endif
#ifdef BUG_WAKE_WORD_READ_AFTER_FLAG
            is_word_new = false;
#endif
#ifndef BUG_NO_SECOND_LOOK
            peek();
#endif
#ifdef BUG_WAKE_WORD_READ_AFTER_LOOK
            is_word_new = false;
#endif
            /* Who has the role is asked once more and sees what is there, or says at its leaving that it does not. */
            if
            :: atomic { found -> found = false }; request();
                if
                :: takes_role -> is_asleep = false; hold_role(); goto again
                :: !takes_role
                fi
            :: !found
            fi;
#ifdef BUG_WAKE_WORD_READ_AFTER_ASKING
            is_word_new = false;
#endif
            atomic {
                if
                :: !is_word_new -> scheduler_sleeps = true
                :: else -> skip
                fi };
end:            !scheduler_sleeps;
            is_asleep = false
        fi;
again:  skip
    od
}

#ifdef DRIVEN
/* The default mode: whoever has submitted asks for the role, works, and may leave after any round, its budget being spent. */
active [ISSUERS] proctype issuer()
{
    byte left = RECORDS;
    bool found, takes_role;
    do
    :: left > 0 ->
        atomic { !L -> L = true; in_ring++ };
        L = false;
#ifndef BUG_DRIVER_ASKS_NOBODY
        request();
#endif
        if
        :: takes_role ->
            if
            :: hold_role()
            :: engine_round();
                atomic { E = 0; has_engine = false; takes_role = false };
#ifndef BUG_DRIVER_LEAVES_WORK
                wake_scheduler()
#endif
            fi
        :: !takes_role
        fi;
        found = false;
        left--
    :: left == 0 -> break
    od
}
#else
active [ISSUERS] proctype issuer()
{
    byte left = RECORDS;
    bool wakes;
    do
    :: left > 0 ->
        atomic { !L -> L = true; in_ring++ };
        wakes = is_asleep;
        atomic { is_asleep = is_asleep && !wakes; L = false }; /* one issuer wakes; the next need not */
        if
        :: atomic { wakes -> wakes = false };
#ifndef BUG_ISSUER_KEEPS_WAKE_WORD
            is_word_new = true;
#endif
            FUTEX_WAKE(scheduler_sleeps)
        :: !wakes
        fi;
        left--
    :: left == 0 -> break
    od
}
#endif

active proctype worker()
{
    bool found, takes_role;
end:
    do
    :: atomic { at_workers > 0 -> at_workers-- };
        completions++;
        request();
        if
        :: takes_role -> hold_role()
        :: !takes_role
        fi
    od
}

active proctype lender()
{
#ifdef BUG_PUSH_STORE_WAITS /* release push and relaxed look, no read-modify-write between them */
    push_store_waits = true;
    if
    :: is_asleep -> is_word_new = true; FUTEX_WAKE(scheduler_sleeps)
    :: !is_asleep
    fi
#else
    lend_ended = true;
    wake_scheduler()
#endif
}

#ifdef HELPER
/* Its wait may be over after any round: it drops the role with work left, and says so. */
active proctype helper()
{
    bool found, takes_role;
    request();
    if
    :: takes_role -> engine_round();
        atomic { E = 0; has_engine = false };
#ifndef BUG_HELPER_LEAVES_WORK
        wake_scheduler()
#endif
    :: !takes_role
    fi
}

#endif

active proctype store_buffer()
{
end:
    do
    :: atomic { asleep_store_waits -> is_asleep = true; asleep_store_waits = false; L = false }
    :: atomic { push_store_waits -> push_store_waits = false; lend_ended = true }
    od
}

active proctype observer()
{
    retired == PUSHED && lend_retired
}
