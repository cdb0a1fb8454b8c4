#include <streams/lanes.h>

void eddy_lanes_init(eddy_lanes *lanes, int64_t count, int64_t grain, int32_t thread_count) {
    int64_t slices = count / grain + (count % grain != 0);
    int64_t most = thread_count < EDDY_LANES_MOST ? thread_count : EDDY_LANES_MOST;
    lanes->grain = grain;
    lanes->lane_count = (int32_t)(slices < most ? slices : most);
    int64_t slice = 0;
    for (int32_t i = 0; i < lanes->lane_count; i++) {
        eddy_store_relaxed(&lanes->lanes[i].next, slice * grain);
        slice += slices / lanes->lane_count + (i < slices % lanes->lane_count);
        lanes->lanes[i].end = slice < slices ? slice * grain : count;
    }
}

static bool has_more(const eddy_lane *lane) {
    return eddy_load_relaxed(&lane->next) < lane->end;
}

bool eddy_lanes_take(eddy_lanes *lanes, int32_t lane, int64_t *begin, int64_t *end) {
    for (int32_t i = 0; i < lanes->lane_count; i++) {
        eddy_lane *from = &lanes->lanes[(lane + i) % lanes->lane_count];
        if (!has_more(from))
            continue;
        *begin = eddy_add_relaxed(&from->next, lanes->grain);
        *end = from->end - *begin < lanes->grain ? from->end : *begin + lanes->grain;
        if (*begin < from->end)
            return true;
    }
    return false;
}

bool eddy_lanes_has_more(const eddy_lanes *lanes) {
    for (int32_t i = 0; i < lanes->lane_count; i++)
        if (has_more(&lanes->lanes[i]))
            return true;
    return false;
}
