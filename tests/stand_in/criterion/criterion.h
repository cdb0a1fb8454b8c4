/* Found before Criterion's own header in builds under ThreadSanitizer. */
#include <tests/stand_in.h>
