/* What a timeline shows, as JSON, for those who draw it otherwise. */
#ifndef TOOLS_EDDY_TIMELINE_JSON_H
#define TOOLS_EDDY_TIMELINE_JSON_H

#include "timeline.h"

/* Sorts the bars. To the file that --output names, or standard output. TOOL_OK or TOOL_FAILED. */
int timeline_json_write(const tool_arguments *arguments, timeline *t);

#endif
