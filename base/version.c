#include <eddy/version.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

int eddy_version(void) {
    return EDDY_VERSION;
}

const char *eddy_version_text(void) {
    return TEXT(EDDY_VERSION_MAJOR) "." TEXT(EDDY_VERSION_MINOR) "." TEXT(EDDY_VERSION_PATCH);
}
