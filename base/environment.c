#include <base/environment.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

const char *eddy_environment_string(const char *variable) {
    const char *text = getenv(variable);
    return text && *text ? text : NULL;
}

bool eddy_environment_parse_bool(const char *text, bool *value) {
    static const char *const words[2][4] = {{"0", "false", "no", "off"},
                                            {"1", "true", "yes", "on"}};
    for (int truth = 0; truth < 2; truth++)
        for (int i = 0; i < 4; i++)
            if (strcasecmp(text, words[truth][i]) == 0) {
                *value = truth;
                return true;
            }
    return false;
}

/* Bits to shift by for a unit letter; -1 when it is none. */
static int unit_shift(char unit) {
    switch (unit) {
    case 'K':
    case 'k':
        return 10;
    case 'M':
    case 'm':
        return 20;
    case 'G':
    case 'g':
        return 30;
    default:
        return -1;
    }
}

bool eddy_environment_parse_int(const char *text, int64_t *value) {
    char *end;
    int errno_before = errno;
    errno = 0;
    bool is_hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    long long number = strtoll(text, &end, is_hexadecimal ? 16 : 10);
    bool is_number = errno == 0 && end != text;
    errno = errno_before;
    if (!is_number)
        return false;
    if (*end != '\0') {
        int shift = unit_shift(*end);
        if (shift < 0 || end[1] != '\0' || number > INT64_MAX >> shift ||
            number < -(INT64_MAX >> shift))
            return false;
        number *= INT64_C(1) << shift;
    }
    *value = number;
    return true;
}
