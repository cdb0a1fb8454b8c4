#include <program/cursor.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void eddy_cursor_init(eddy_cursor *cursor, const char *text, size_t length) {
    *cursor = (eddy_cursor){.at = text, .end = text + length, .line = 1};
}

bool eddy_cursor_fail(eddy_cursor *cursor, eddy_status status, const char *format, ...) {
    if (cursor->status != EDDY_OK)
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cursor->reason, sizeof(cursor->reason), format, arguments);
    va_end(arguments);
    cursor->status = status;
    cursor->failed_line = cursor->line;
    return false;
}

/* What is there, in a form that a message can hold. */
static void show(const eddy_cursor *cursor, char *text, size_t size) {
    size_t length = 0, left = (size_t)(cursor->end - cursor->at);
    if (left == 0) {
        snprintf(text, size, "the end");
        return;
    }
    if (*cursor->at == '\n') {
        snprintf(text, size, "the end of the line");
        return;
    }
    text[length++] = '\'';
    for (size_t i = 0; i < left && i < 16 && cursor->at[i] != '\n' && length + 2 < size; i++) {
        bool is_shown = cursor->at[i] >= ' ' && cursor->at[i] <= '~';
        text[length++] = is_shown ? cursor->at[i] : '?';
    }
    text[length++] = '\'';
    text[length] = 0;
}

bool eddy_cursor_expected(eddy_cursor *cursor, const char *what) {
    char found[32];
    show(cursor, found, sizeof(found));
    return eddy_cursor_fail(cursor, EDDY_INVALID_ARGUMENT, "expected %s, not %s", what, found);
}

bool eddy_cursor_is_at(const eddy_cursor *cursor, const char *literal) {
    size_t length = strlen(literal);
    return (size_t)(cursor->end - cursor->at) >= length && memcmp(cursor->at, literal, length) == 0;
}

bool eddy_cursor_take(eddy_cursor *cursor, const char *literal) {
    if (!eddy_cursor_is_at(cursor, literal))
        return false;
    cursor->at += strlen(literal);
    return true;
}

bool eddy_cursor_pass(eddy_cursor *cursor, const char *literal) {
    char what[64];
    if (eddy_cursor_take(cursor, literal))
        return true;
    snprintf(what, sizeof(what), "'%s'", literal);
    return eddy_cursor_expected(cursor, what);
}

bool eddy_cursor_pass_line_end(eddy_cursor *cursor) {
    if (!eddy_cursor_take(cursor, "\n"))
        return eddy_cursor_expected(cursor, "the end of the line");
    cursor->line++;
    return true;
}

/* ---- words and numbers ---- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t word_length(const eddy_cursor *cursor) {
    const char *at = cursor->at;
    if (at == cursor->end || !is_letter(*at))
        return 0;
    while (at < cursor->end && (is_letter(*at) || is_digit(*at) || *at == '.'))
        at++;
    return (size_t)(at - cursor->at);
}

bool eddy_cursor_word(eddy_cursor *cursor, const char *what, eddy_lexeme *word) {
    *word = (eddy_lexeme){cursor->at, word_length(cursor)};
    if (word->length == 0)
        return eddy_cursor_expected(cursor, what);
    cursor->at += word->length;
    return true;
}

bool eddy_lexeme_is(eddy_lexeme slice, const char *word) {
    return slice.length == strlen(word) && memcmp(slice.start, word, slice.length) == 0;
}

/* Digits without a needless 0 in front, as an unsigned number. */
static bool read_digits(eddy_cursor *cursor, uint64_t *value) {
    const char *from = cursor->at;
    *value = 0;
    for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++)
        if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*cursor->at - '0'), value))
            return false;
    return cursor->at > from && (*from != '0' || cursor->at == from + 1);
}

bool eddy_cursor_integer(eddy_cursor *cursor, const char *what, int64_t least, int64_t most,
                         int64_t *value) {
    char expected[128];
    const char *from = cursor->at;
    bool is_negative = eddy_cursor_take(cursor, "-");
    uint64_t digits, bound = (uint64_t)INT64_MAX + is_negative;
    bool is_number = read_digits(cursor, &digits) && digits <= bound && !(is_negative && !digits);
    int64_t number = is_number ? (int64_t)(is_negative ? 0 - digits : digits) : 0;
    if (is_number && number >= least && number <= most) {
        *value = number;
        return true;
    }
    cursor->at = from;
    snprintf(expected, sizeof(expected), "%s from %" PRId64 " to %" PRId64, what, least, most);
    return eddy_cursor_expected(cursor, expected);
}

bool eddy_cursor_integers(eddy_cursor *cursor, const char *what, int64_t least, int32_t *count,
                          int64_t *values) {
    *count = 0;
    if (!eddy_cursor_pass(cursor, "["))
        return false;
    while (!eddy_cursor_take(cursor, "]")) {
        if (*count == EDDY_RANK_MAX)
            return eddy_cursor_expected(cursor, "']': there are 16 already");
        if ((*count > 0 && !eddy_cursor_pass(cursor, ", ")) ||
            !eddy_cursor_integer(cursor, what, least, INT64_MAX, &values[*count]))
            return false;
        ++*count;
    }
    return true;
}

bool eddy_cursor_name(eddy_cursor *cursor, eddy_lexeme *name) {
    if (!eddy_cursor_is_at(cursor, "\""))
        return eddy_cursor_word(cursor, "a name", name);
    const char *at = cursor->at + 1;
    while (at < cursor->end && *at != '"' && *at != '\n')
        at += *at == '\\' && at + 1 < cursor->end && at[1] != '\n' ? 2 : 1;
    if (at >= cursor->end || *at != '"')
        return eddy_cursor_expected(cursor, "a name in quotes");
    *name = (eddy_lexeme){cursor->at, (size_t)(at + 1 - cursor->at)};
    cursor->at = at + 1;
    return true;
}
