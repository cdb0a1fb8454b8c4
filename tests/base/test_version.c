#include <criterion/criterion.h>
#include <eddy/version.h>
#include <stdio.h>

Test(version, library_and_headers_agree) {
    cr_assert_eq(eddy_version(), EDDY_VERSION);
    char text[32];
    snprintf(text, sizeof(text), "%d.%d.%d", EDDY_VERSION_MAJOR, EDDY_VERSION_MINOR,
             EDDY_VERSION_PATCH);
    cr_assert_str_eq(eddy_version_text(), text);
}
