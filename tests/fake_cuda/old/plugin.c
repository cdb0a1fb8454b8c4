/* A plug-in of another version, which the library must not use. */
#include <streams/plugin.h>

__attribute__((visibility("default"))) eddy_plugin_open_fn eddy_plugin_open;

const eddy_plugin *eddy_plugin_open(const eddy_plugin_host *host) {
    static const eddy_plugin old = {.version = EDDY_PLUGIN_VERSION - 1};
    (void)host;
    return &old;
}
