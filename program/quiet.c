#include <program/quiet.h>

void eddy_quiet_begin(eddy_quiet *quiet) {
    *quiet = (eddy_quiet){0};
    eddy_error_take(&quiet->before);
    quiet->outcome = eddy_outcome_set_aside();
}

void eddy_quiet_end(eddy_quiet *quiet, eddy_error *failed) {
    *failed = (eddy_error){0};
    eddy_error_take(failed);
    eddy_outcome_go_on(quiet->outcome);
    if (quiet->before.status != EDDY_OK)
        eddy_error_restore(&quiet->before);
}
