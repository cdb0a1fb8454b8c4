/* Short texts that stay for good: names that events tell of when what bears them may be gone. Any thread. */
#ifndef EDDY_BASE_KEPT_TEXT_H
#define EDDY_BASE_KEPT_TEXT_H

/* The longest, with its 0; longer ones are cut, between two characters of UTF-8. */
#define EDDY_KEPT_TEXT_BYTES 64
#define EDDY_KEPT_TEXTS_MOST 256

/* The one that is kept for this text; NULL where there is no room. */
const char *eddy_kept_text(const char *text);

#endif
