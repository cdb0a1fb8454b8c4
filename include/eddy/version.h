/* The library's version. Before 1.0 a minor step may change calls; the ABI only grows within one soname. */
#ifndef EDDY_VERSION_H
#define EDDY_VERSION_H

#include <eddy/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the headers a program was compiled with. meson.build takes its version from these lines. */
#define EDDY_VERSION_MAJOR 0
#define EDDY_VERSION_MINOR 2
#define EDDY_VERSION_PATCH 0

#define EDDY_VERSION_NUMBER(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define EDDY_VERSION EDDY_VERSION_NUMBER(EDDY_VERSION_MAJOR, EDDY_VERSION_MINOR, EDDY_VERSION_PATCH)

/* Of the library that runs: EDDY_VERSION of its build. */
EDDY_API int eddy_version(void);
/* The same as text: "0.2.0". Static storage. */
EDDY_API const char *eddy_version_text(void);

#ifdef __cplusplus
}
#endif
#endif
