/* Decimal digits without printf, which takes ten times as long: for text that is made of each kernel or event. */
#ifndef EDDY_BASE_DIGITS_H
#define EDDY_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define EDDY_DIGITS_MOST 20 /* of 2^64 - 1; a sign is one more */

/* Without an end; how many characters. */
static inline size_t eddy_digits_put(char *to, uint64_t number) {
    char reversed[EDDY_DIGITS_MOST];
    size_t count = 0, length = 0;
    do {
        reversed[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0)
        to[length++] = reversed[--count];
    return length;
}

static inline size_t eddy_digits_put_signed(char *to, int64_t number) {
    if (number >= 0)
        return eddy_digits_put(to, (uint64_t)number);
    *to = '-';
    return 1 + eddy_digits_put(to + 1, 0 - (uint64_t)number);
}

#endif
