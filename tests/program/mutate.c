#include "mutate.h"

#include <stdio.h>
#include <string.h>

uint32_t mutator_below(mutator *m, uint32_t bound) {
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return (uint32_t)(m->state >> 33) % bound;
}

/* Puts `part` in place of `cut` bytes. */
static size_t replace(char *text, size_t length, size_t at, size_t cut, const char *part) {
    size_t bytes = strlen(part);
    cut = cut > length - at ? length - at : cut;
    memmove(text + at + bytes, text + at + cut, length - at - cut);
    memcpy(text + at, part, bytes);
    return length + bytes - cut;
}

size_t mutator_change(mutator *m, char *text, size_t length) {
    static const char *const parts[] = {
        "[",       "]",     ", ",   "%",        "%0",       "%1",  "none", "mut ",
        "set ",    "x",     "w",    " at 1",    "-1",       "0",   "\n",   " strides [0, 0]",
        "1000007", "nan",   " of ", "number 0", "draw = 0", "f64", "i64",  "9223372036854775807",
        "\"",      "\\x00", "bool", "2, 3"};
    for (uint32_t changes = 1 + mutator_below(m, 3); changes > 0 && length > 0; changes--) {
        const char *part = parts[mutator_below(m, sizeof(parts) / sizeof(parts[0]))];
        size_t at = mutator_below(m, (uint32_t)length), cut = mutator_below(m, 8);
        switch (mutator_below(m, 4)) {
        case 0:
            text[at] = (char)mutator_below(m, 256);
            break;
        case 1:
            length = replace(text, length, at, cut, "");
            break;
        case 2:
            length = replace(text, length, at, 0, part);
            break;
        default:
            length = replace(text, length, at, strlen(part), part);
        }
    }
    return length;
}

static size_t digits_at(const char *text, size_t length, size_t at) {
    size_t count = 0;
    while (at + count < length && text[at + count] >= '0' && text[at + count] <= '9')
        count++;
    return count;
}

/* The n-th number of the text behind its first line; the length if there are fewer. */
static size_t find_number(const char *text, size_t length, uint32_t n, uint32_t *count) {
    const char *line = memchr(text, '\n', length);
    *count = 0;
    for (size_t at = line ? (size_t)(line - text) : length; at < length; at++) {
        size_t digits = digits_at(text, length, at);
        if (digits > 0 && (*count)++ == n)
            return at;
        at += digits;
    }
    return length;
}

size_t mutator_renumber(mutator *m, char *text, size_t length) {
    static const char *const numbers[] = {
        "0",  "1",  "2",  "3",  "4",    "5",     "6",          "7",          "8",
        "12", "16", "17", "64", "1000", "65536", "2147483647", "4294967296", "4611686018427387904"};
    for (uint32_t changes = 1 + mutator_below(m, 3); changes > 0; changes--) {
        uint32_t count;
        (void)find_number(text, length, UINT32_MAX, &count);
        if (count == 0)
            return length;
        size_t at = find_number(text, length, mutator_below(m, count), &count);
        const char *number = numbers[mutator_below(
            m, mutator_below(m, 4) ? 9 : sizeof(numbers) / sizeof(numbers[0]))];
        if (strlen(number) < 11 || mutator_below(m, 4) == 0)
            length = replace(text, length, at, digits_at(text, length, at), number);
    }
    return length;
}
