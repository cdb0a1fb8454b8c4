#include "place.h"

#include <string.h>
#include <unistd.h>

/* False: the path is too long, or the system does not say where the command lies. */
static bool path_from_command(const char *place, char path[TOOL_PATH_BYTES]) {
    ssize_t length = place[0] == '/' ? 0 : readlink("/proc/self/exe", path, TOOL_PATH_BYTES - 1);
    if (length < 0 || (size_t)length + strlen(place) + 2 > TOOL_PATH_BYTES)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, place);
    return true;
}

bool tool_find(const tool_arguments *arguments, const char *what, const char *installed,
               const char *built, char path[TOOL_PATH_BYTES]) {
    if ((path_from_command(installed, path) && access(path, F_OK) == 0) ||
        (path_from_command(built, path) && access(path, F_OK) == 0))
        return true;
    (void)tool_fail(arguments, "there is no %s: neither %s nor %s from where the command lies",
                    what, installed, built);
    return false;
}
