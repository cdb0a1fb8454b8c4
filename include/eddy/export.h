/* The marks of public functions. */
#ifndef EDDY_EXPORT_H
#define EDDY_EXPORT_H

#if defined(__GNUC__)
#define EDDY_API __attribute__((__visibility__("default")))
#else
#define EDDY_API
#endif

/* Checked like printf where the compiler can. */
#if defined(__GNUC__)
#define EDDY_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define EDDY_PRINTF(text, first)
#endif

#endif
