/* Section 8: freed numbers on their way back to the issuers, through the ring of numbers and the list beyond it. Models
 * eddy_graph_release, eddy_graph_return_numbers, eddy_graph_return_beyond and publish (vm/graph.c, vm/engine.c) against
 * numbers_collect, take_beyond and eddy_vm_numbers_find (vm/submit.c).
 *
 * Asserted: a number is at one place at a time; the table grows only where nothing was to be found from the beginning of the search to
 * its end (the engine takes the list back for a moment to put more in front). Reached in every run, or the verifier reports an invalid
 * end state: all numbers are back with the issuers.
 *
 * The issuer is whoever holds L: one process. */
#include "primitives.pml"

#ifndef NUMBERS
#define NUMBERS 4
#endif
#ifndef TAKES
#define TAKES 5
#endif
#define RING 2
#define LINE 2 /* numbers shown at a time */
#define NONE 0 /* number 0 names nothing */

byte cells[RING];
byte returned, taken;      /* positions: shown by the engine; read by the holder of L */
byte beyond;               /* the list beyond the ring */
byte next[NUMBERS + 1];    /* of that list, and of the engine's */
byte free, used, released; /* lock: L; lock: L; on its way to the engine: sets */
byte kept;                 /* lock: L; what is left of a list that was taken */
byte shown, before;        /* ghosts, sets: numbers that the issuers can find; and could when the last search began */
bool is_over;

/* ---- the engine ---- */

byte unreturned, last, written;

inline show_ring()
{
    atomic {
        returned = written;
        shown = shown | in_ring;
        in_ring = 0
    }
}

inline return_numbers()
{
    do
    :: unreturned != NONE ->
        seen = taken;
        if
#ifdef BUG_RING_OVERRUN
        :: atomic { true -> seen = 0 };
#else
        :: atomic { written - seen == RING -> seen = 0; break }
        :: atomic { written - seen != RING -> seen = 0 };
#endif
#ifdef BUG_SHOWN_BEFORE_WRITTEN
            atomic { returned = written + 1; ADD(shown, unreturned) };
#endif
            atomic { n = unreturned; unreturned = next[n]; next[n] = NONE };
            atomic {
                cells[written % RING] = n;
                written++;
#ifndef BUG_SHOWN_BEFORE_WRITTEN
                ADD(in_ring, n);
#endif
                n = NONE
            };
            if
            :: written % LINE == 0 -> show_ring()
            :: written % LINE != 0
            fi
        fi
    :: unreturned == NONE -> break
    od
}

inline return_beyond()
{
    if
    :: unreturned != NONE ->
        atomic {
            list = 0;
            n = unreturned;
            do
            :: n != NONE -> ADD(list, n); n = next[n]
            :: else -> break
            od
        };
#ifdef BUG_BEYOND_OVERWRITES
        skip;
#elif defined(BUG_BEYOND_READ_NOT_TAKEN)
        next[last] = beyond;
#elif defined(BUG_SHOWN_BEFORE_LINKED)
        n = beyond;
#else
        atomic { next[last] = beyond; beyond = NONE; n = next[last] }; /* what it takes back is out of sight for a moment */
        atomic {
            do
            :: n != NONE -> DROP(shown, n); DROP(before, n); ADD(list, n); n = next[n]
            :: else -> break
            od
        };
#endif
        atomic { beyond = unreturned; shown = shown | list; list = 0 };
#ifdef BUG_SHOWN_BEFORE_LINKED
        atomic { next[last] = n; n = NONE };
#endif
        atomic { unreturned = NONE; last = NONE }
    :: unreturned == NONE
    fi
}

active proctype engine()
{
    byte n, seen, list, in_ring;
    bool has_news;
end:
    do
    :: atomic { released != 0 ->
        if
        :: HAS(released, 1) -> n = 1
        :: HAS(released, 2) -> n = 2
        :: HAS(released, 3) -> n = 3
        :: HAS(released, 4) -> n = 4
        fi;
        DROP(released, n);
        next[n] = unreturned;
        if
        :: unreturned == NONE -> last = n
        :: else -> skip
        fi;
        unreturned = n;
        has_news = true;
        n = NONE };
        return_numbers()
    :: has_news -> /* publishes, once: what it leaves behind stays until something else comes */
        has_news = false;
        return_numbers();
#ifndef BUG_REST_STAYS
        return_beyond();
#endif
        if
        :: returned != written -> show_ring()
        :: returned == written
        fi
    od
}

/* ---- the issuers ---- */

inline give(n)
{
    assert(n != NONE && !HAS(free | used | released, n));
    DROP(shown, n);
    ADD(free, n)
}

inline numbers_find()
{
    before = shown;
    position = taken;
    end = returned;
#ifdef BUG_TAKEN_BEFORE_READ
    taken = end;
#endif
    do
    :: position != end -> atomic { n = cells[position % RING]; give(n); position++; n = NONE }
    :: position == end -> break
    od;
    taken = end;
    if
    :: free == 0 ->
        if
        :: kept == NONE ->
#ifdef BUG_LIST_READ_THEN_CLEARED
            kept = beyond;
            beyond = NONE
#else
            atomic { kept = beyond; beyond = NONE }
#endif
        :: kept != NONE
        fi;
        if
        :: kept != NONE -> atomic { n = kept; kept = next[n]; next[n] = NONE; give(n); n = NONE }
        :: kept == NONE
        fi
    :: free != 0
    fi;
    atomic { position = 0; end = 0 }
}

active proctype issuer()
{
    byte left = TAKES, position, end, n;
    atomic { n = 1; do :: n <= NUMBERS -> ADD(free, n); n++ :: else -> break od; n = 0 };
    do
    :: left > 0 ->
        left--;
        if
        :: free == 0 -> numbers_find()
        :: true -> numbers_find() /* now and then */
        :: free != 0
        fi;
        if
        :: atomic { free != 0 -> /* the last one in */
            if
            :: HAS(free, 1) -> n = 1
            :: HAS(free, 2) -> n = 2
            :: HAS(free, 3) -> n = 3
            :: HAS(free, 4) -> n = 4
            fi;
            DROP(free, n); ADD(used, n); n = NONE }
        :: atomic { free == 0 -> assert(before == 0) } /* a new one: nothing was to be found */
        fi;
        before = 0;
        if
        :: atomic { used != 0 -> released = released | used; used = 0 }
        :: true
        fi
    :: left == 0 -> break
    od;
    atomic { released = released | used; used = 0 };
    do
    :: atomic { free == BIT(NUMBERS + 1) - 2 -> break }
    :: free != BIT(NUMBERS + 1) - 2 ->
        (taken != returned || beyond != NONE || kept != NONE); /* for ever, where one is lost */
        atomic { used = free; free = 0 }; /* so that it looks beyond the ring too */
        numbers_find();
        atomic { free = free | used; used = 0; before = 0 }
    od;
    is_over = true
}
