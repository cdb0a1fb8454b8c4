#include <interpreter/call/recorder.h>

#include <base/status.h>

eddy_status eddy_recorder_refuse(const eddy_caller *caller, const char *why, eddy_origin origin) {
    return caller == NULL || caller->recorder == NULL ||
                   !caller->recorder->refuse(caller->recorder, origin)
               ? EDDY_OK
               : eddy_fail(EDDY_UNSUPPORTED, origin, "it cannot be recorded, since %s", why);
}
