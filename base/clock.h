/* The clock that timeouts are measured with, and deadlines on it. */
#ifndef EDDY_BASE_CLOCK_H
#define EDDY_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define EDDY_CLOCK_FOREVER INT64_MAX

/* CLOCK_MONOTONIC in ns. Tests may replace it (NULL restores). */
int64_t eddy_clock_ns(void);
void eddy_clock_replace(int64_t (*clock)(void));
/* Whether tests have replaced it. */
bool eddy_clock_is_replaced(void);

/* now + timeout, saturating; a negative timeout counts as 0. */
int64_t eddy_clock_deadline(int64_t timeout_ns);
/* The timeout that is left until a deadline: 0 once it has passed, EDDY_CLOCK_FOREVER if there is none. */
int64_t eddy_clock_left(int64_t deadline_ns);

#endif
