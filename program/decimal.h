/* Doubles as text that gives the same bits back, whatever the locale and the thread's rounding mode. */
#ifndef EDDY_PROGRAM_DECIMAL_H
#define EDDY_PROGRAM_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

#define EDDY_DECIMAL_BYTES 40

/* "0.1", "2.0", "1e-05", "inf", "-nan", "nan:7ff8000000000001" (the bits of a NaN that is not the usual one), with its final 0: the
 * fewest digits of 15 to 17 that give the number back. It never reads as an integer. */
void eddy_decimal_format(double value, char text[EDDY_DECIMAL_BYTES]);

/* The number at the start of `text`, which need not end; its length, 0 if there is none. */
size_t eddy_decimal_parse(const char *text, size_t length, double *value);

#endif
