/* The library's functions within a plug-in (streams/plugin.h). */
#ifndef EDDY_STREAMS_PLUGIN_HOST_H
#define EDDY_STREAMS_PLUGIN_HOST_H

#include <streams/plugin.h>

/* Before any of them is called; the table lives as long as the process. */
void eddy_plugin_keep_host(const eddy_plugin_host *given);

#endif
