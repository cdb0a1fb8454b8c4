#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <vm/errors.h>

void eddy_errors_format(eddy_status status, const char *device, char *buffer, size_t size) {
    bool is_named = device && status == EDDY_DEVICE_LOST;
    snprintf(buffer, size, "%s%s%s%s", eddy_status_text(status), is_named ? " (" : "",
             is_named ? device : "", is_named ? ")" : "");
}

eddy_status eddy_errors_fail(eddy_status status, const char *device, eddy_origin origin) {
    char what[96];
    eddy_errors_format(status, device, what, sizeof(what));
    return eddy_fail(status, origin, "%s", what);
}

/* A place that is free, or whose record has been seen; EDDY_ERRORS_MAX: none. */
static uint32_t find_room_locked(const eddy_errors *errors) {
    for (uint32_t i = 0; i < EDDY_ERRORS_MAX; i++) {
        uint32_t candidate = (errors->next + i) % EDDY_ERRORS_MAX;
        if (errors->records[candidate].sequence == 0 || errors->is_seen[candidate])
            return candidate;
    }
    return EDDY_ERRORS_MAX;
}

/* The lowest but one: a sync returns the lowest, and reads of tensors mostly ask for the newest. */
static uint32_t find_oldest_but_first_locked(const eddy_errors *errors) {
    const eddy_error *records = errors->records;
    uint32_t first = records[0].sequence < records[1].sequence ? 0 : 1, second = 1 - first;
    for (uint32_t i = 2; i < EDDY_ERRORS_MAX; i++) {
        if (records[i].sequence < records[first].sequence) {
            second = first;
            first = i;
        } else if (records[i].sequence < records[second].sequence) {
            second = i;
        }
    }
    return second;
}

static void add(eddy_errors *errors, const eddy_error *error, bool is_seen) {
    eddy_lock_acquire(&errors->lock);
    errors->made++;
    errors->seen += is_seen;
    uint32_t slot = find_room_locked(errors);
    if (slot == EDDY_ERRORS_MAX) {
        slot = find_oldest_but_first_locked(errors);
        errors->dropped_unseen++;
    }
    errors->records[slot] = *error;
    errors->is_seen[slot] = is_seen;
    errors->next = slot + 1;
    eddy_lock_release(&errors->lock);
}

void eddy_errors_add(eddy_errors *errors, const eddy_error *error) {
    add(errors, error, false);
}

void eddy_errors_add_seen(eddy_errors *errors, const eddy_error *error) {
    add(errors, error, true);
}

void eddy_errors_add_known(eddy_errors *errors, const eddy_error *error) {
    eddy_lock_acquire(&errors->lock);
    errors->made++;
    errors->seen++;
    errors->known[errors->next_known] = *error;
    errors->next_known = (errors->next_known + 1) % EDDY_ERRORS_KNOWN_MAX;
    eddy_lock_release(&errors->lock);
}

/* NULL: there is none. */
static const eddy_error *find_known_locked(const eddy_errors *errors, uint64_t sequence) {
    for (uint32_t i = 0; i < EDDY_ERRORS_KNOWN_MAX; i++)
        if (errors->known[i].sequence == sequence)
            return &errors->known[i];
    return NULL;
}

static eddy_error *find_locked(eddy_errors *errors, uint64_t sequence, uint32_t *slot) {
    for (uint32_t i = 0; i < EDDY_ERRORS_MAX; i++)
        if (errors->records[i].sequence == sequence) {
            *slot = i;
            return &errors->records[i];
        }
    return NULL;
}

void eddy_errors_find(eddy_errors *errors, uint64_t sequence, eddy_error *error) {
    eddy_lock_acquire(&errors->lock);
    uint32_t slot;
    const eddy_error *record = find_locked(errors, sequence, &slot);
    if (record && !errors->is_seen[slot]) {
        errors->is_seen[slot] = true;
        errors->seen++;
    }
    if (!record)
        record = find_known_locked(errors, sequence);
    if (record)
        *error = *record;
    eddy_lock_release(&errors->lock);
    if (!record)
        eddy_error_fill(error, EDDY_KERNEL_FAILED, (eddy_origin){0}, sequence,
                        "instruction %llu failed; its record made room for newer ones",
                        (unsigned long long)sequence);
}

bool eddy_errors_has(eddy_errors *errors, uint64_t sequence) {
    eddy_lock_acquire(&errors->lock);
    uint32_t slot;
    bool is_there = find_locked(errors, sequence, &slot) || find_known_locked(errors, sequence);
    eddy_lock_release(&errors->lock);
    return is_there;
}

bool eddy_errors_is_seen(eddy_errors *errors, uint64_t sequence) {
    eddy_lock_acquire(&errors->lock);
    uint32_t slot;
    /* A replaced record had been seen, or was counted in a sum that a sync has returned. */
    bool is_seen = !find_locked(errors, sequence, &slot) || errors->is_seen[slot];
    eddy_lock_release(&errors->lock);
    return is_seen;
}

bool eddy_errors_take_unseen(eddy_errors *errors, eddy_error *error) {
    eddy_lock_acquire(&errors->lock);
    uint64_t count = errors->dropped_unseen;
    const eddy_error *lowest = NULL;
    for (uint32_t i = 0; i < EDDY_ERRORS_MAX; i++) {
        const eddy_error *record = &errors->records[i];
        if (record->sequence == 0 || errors->is_seen[i])
            continue;
        errors->is_seen[i] = true;
        count++;
        if (!lowest || record->sequence < lowest->sequence)
            lowest = record;
    }
    if (lowest)
        *error = *lowest;
    else if (count > 0)
        eddy_error_fill(error, EDDY_KERNEL_FAILED, (eddy_origin){0}, 0,
                        "an instruction failed; there was no room for its record");
    if (count > 0)
        error->more = count - 1;
    errors->seen += count;
    errors->dropped_unseen = 0;
    eddy_lock_release(&errors->lock);
    return count > 0;
}
