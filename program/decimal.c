#include <program/decimal.h>

#include <fenv.h>
#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_NAN UINT64_C(0x7ff8000000000000)
#define SIGN (UINT64_C(1) << 63)

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static double of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* ---- writing ---- */

static void format_special(double value, char *text) {
    uint64_t bits = bits_of(value);
    if (isinf(value))
        snprintf(text, EDDY_DECIMAL_BYTES, "%s", value < 0 ? "-inf" : "inf");
    else if ((bits & ~SIGN) == USUAL_NAN)
        snprintf(text, EDDY_DECIMAL_BYTES, "%s", bits & SIGN ? "-nan" : "nan");
    else
        snprintf(text, EDDY_DECIMAL_BYTES, "nan:%016" PRIx64, bits);
}

static bool is_digit_or_sign(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == 'e';
}

/* Puts '.' in place of the locale's sign, which may have several bytes, and ".0" behind what would read as an integer. */
static void localise(char *text) {
    size_t kept = 0;
    bool has_mark = strchr(text, 'e') != NULL;
    for (size_t i = 0; text[i]; i++) {
        if (is_digit_or_sign(text[i])) {
            text[kept++] = text[i];
        } else if (kept > 0 && text[kept - 1] != '.') {
            text[kept++] = '.';
            has_mark = true;
        }
    }
    memcpy(text + kept, has_mark ? "" : ".0", has_mark ? 1 : 3);
}

static void format_finite(double value, char *text) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, EDDY_DECIMAL_BYTES - 3, "%.*g", digits, value);
        if (bits_of(strtod(text, NULL)) == bits_of(value))
            break;
    }
    localise(text);
}

void eddy_decimal_format(double value, char text[EDDY_DECIMAL_BYTES]) {
    int before = fegetround();
    fesetround(FE_TONEAREST);
    if (isfinite(value))
        format_finite(value, text);
    else
        format_special(value, text);
    fesetround(before);
}

/* ---- reading ---- */

static size_t digits_at(const char *text, size_t length, size_t at) {
    size_t from = at;
    while (at < length && text[at] >= '0' && text[at] <= '9')
        at++;
    return at - from;
}

/* The length of "-12.5e-07", 0 if it is none. *point: where '.' is, 0 if there is none. */
static size_t span_of(const char *text, size_t length, size_t *point) {
    size_t at = length > 0 && text[0] == '-', whole = digits_at(text, length, at);
    *point = 0;
    if (whole == 0)
        return 0;
    at += whole;
    if (at < length && text[at] == '.') {
        size_t fraction = digits_at(text, length, at + 1);
        if (fraction == 0)
            return 0;
        *point = at;
        at += 1 + fraction;
    }
    if (at < length && text[at] == 'e') {
        size_t sign = at + 1 < length && (text[at + 1] == '-' || text[at + 1] == '+');
        size_t exponent = digits_at(text, length, at + 1 + sign);
        if (exponent == 0)
            return 0;
        at += 1 + sign + exponent;
    }
    return at;
}

static size_t parse_finite(const char *text, size_t length, double *value) {
    char copy[EDDY_DECIMAL_BYTES + 16];
    size_t point, span = span_of(text, length, &point);
    if (span == 0 || span >= EDDY_DECIMAL_BYTES)
        return 0;
    if (point)
        snprintf(copy, sizeof(copy), "%.*s%.12s%.*s", (int)point, text, nl_langinfo(RADIXCHAR),
                 (int)(span - point - 1), text + point + 1);
    else
        snprintf(copy, sizeof(copy), "%.*s", (int)span, text);
    int before = fegetround();
    fesetround(FE_TONEAREST);
    double number = strtod(copy, NULL);
    fesetround(before);
    if (!isfinite(number))
        return 0;
    *value = number;
    return span;
}

static size_t parse_bits(const char *text, size_t length, double *value) {
    uint64_t bits = 0;
    if (length < 20)
        return 0;
    for (size_t i = 4; i < 20; i++) {
        const char *digits = "0123456789abcdef", *digit = memchr(digits, text[i], 16);
        if (!digit)
            return 0;
        bits = bits << 4 | (uint64_t)(digit - digits);
    }
    if (!isnan(of_bits(bits)))
        return 0;
    *value = of_bits(bits);
    return 20;
}

static bool begins(const char *text, size_t length, const char *with) {
    return length >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

size_t eddy_decimal_parse(const char *text, size_t length, double *value) {
    size_t sign = begins(text, length, "-");
    if (begins(text, length, "nan:"))
        return parse_bits(text, length, value);
    if (begins(text + sign, length - sign, "nan"))
        *value = of_bits(sign ? USUAL_NAN | SIGN : USUAL_NAN);
    else if (begins(text + sign, length - sign, "inf"))
        *value = sign ? -INFINITY : INFINITY;
    else
        return parse_finite(text, length, value);
    return sign + 3;
}
