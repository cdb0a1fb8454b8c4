/* What the models share: bit sets, the futex, and the submission lock as a model sees it where the lock itself is
 * not the subject (lock.pml is about that). Every statement outside an atomic or d_step is one step that others
 * may come between. */
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define ADD(set, i) set = (set) | BIT(i)
#define DROP(set, i) set = (set) & ~BIT(i)

/* futex(2): the test of the word and the falling asleep are one step. `sleeper` is the waiting thread's own flag
 * for this word; a thread that sleeps with nobody left to wake it is an invalid end state, which the verifier
 * reports. */
#define FUTEX_WAIT(word, value, sleeper) \
    atomic { if :: (word) == (value) -> sleeper = true :: else -> skip fi }; \
    !sleeper
#define FUTEX_WAKE(sleeper) sleeper = false

#define NOBODY 255
