/* A plug-in of another version, which the library must not use: nothing in its table can be called. OTHER_PLUGIN says how far its version lies from the library's; without it there is no table. */
#include <stdlib.h>
#include <streams/plugin.h>

__attribute__((visibility("default"))) eddy_plugin_open_fn eddy_plugin_open;

const eddy_plugin *eddy_plugin_open(const eddy_plugin_host *host) {
    static eddy_plugin other;
    const char *distance = getenv("OTHER_PLUGIN");
    (void)host;
    if (!distance)
        return NULL;
    other.version = EDDY_PLUGIN_VERSION + (uint32_t)atoi(distance);
    return &other;
}
