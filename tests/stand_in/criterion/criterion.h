/* Found before Criterion's own header in builds with a sanitizer. */
#include <tests/stand_in.h>
