#include <base/kept_text.h>

#include <base/process.h>
#include <base/sleep.h>
#include <string.h>

static eddy_lock lock = EDDY_LOCK_OF(EDDY_RANK_NONE);
static bool is_watching_forks;                                 /* lock: lock */
static int count;                                              /* lock: lock */
static char texts[EDDY_KEPT_TEXTS_MOST][EDDY_KEPT_TEXT_BYTES]; /* const once counted */

/* Nobody is adding one. */
static void fork_child(void) {
    eddy_lock_init(&lock, EDDY_RANK_NONE);
}

/* Not within a character: its first byte is none that goes on with one. */
static void cut_to_size(const char *text, char cut[EDDY_KEPT_TEXT_BYTES]) {
    size_t length = strlen(text);
    if (length >= EDDY_KEPT_TEXT_BYTES) {
        length = EDDY_KEPT_TEXT_BYTES - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    memset(cut, 0, EDDY_KEPT_TEXT_BYTES);
    memcpy(cut, text, length);
}

const char *eddy_kept_text(const char *text) {
    char cut[EDDY_KEPT_TEXT_BYTES];
    cut_to_size(text, cut);
    eddy_lock_acquire(&lock);
    if (!is_watching_forks)
        eddy_process_at_fork_child(fork_child);
    is_watching_forks = true;
    int i = 0;
    while (i < count && strcmp(texts[i], cut) != 0)
        i++;
    bool has_room = i < EDDY_KEPT_TEXTS_MOST;
    if (i == count && has_room)
        memcpy(texts[count++], cut, sizeof(cut));
    eddy_lock_release(&lock);
    return has_room ? texts[i] : NULL;
}
