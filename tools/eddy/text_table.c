#include "text_table.h"

#include "memory.h"
#include <stdlib.h>
#include <string.h>

static const char *const others = "(others)";

static uint32_t hash_of(const char *text) {
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* The slot of the text, or the free one where it belongs. */
static uint32_t slot_of(const text_table *table, const char *text) {
    uint32_t slot = hash_of(text) & (table->slot_count - 1);
    while (table->slots[slot] && strcmp(table->texts[table->slots[slot] - 1], text) != 0)
        slot = (slot + 1) & (table->slot_count - 1);
    return slot;
}

static void grow(text_table *table) {
    table->room = table->room ? 2 * table->room : 64;
    table->texts = tool_realloc(table->texts, table->room, sizeof(*table->texts));
    free(table->slots);
    table->slot_count = 4 * table->room;
    table->slots = tool_calloc(table->slot_count, sizeof(*table->slots));
    for (uint32_t i = 0; i < table->count; i++)
        table->slots[slot_of(table, table->texts[i])] = i + 1;
}

/* 0, "", and 1, what there is no room for, are there first. */
static uint32_t add(text_table *table, const char *text) {
    if (table->count == table->room)
        grow(table);
    uint32_t slot = slot_of(table, text);
    table->texts[table->count++] = tool_strdup(text);
    table->slots[slot] = table->count;
    return table->count - 1;
}

uint32_t text_table_number(text_table *table, const char *text) {
    if (table->count == 0) {
        (void)add(table, "");
        (void)add(table, others);
    }
    uint32_t slot = table->slots[slot_of(table, text)];
    if (slot)
        return slot - 1;
    return table->count < (table->most ? table->most : TEXT_TABLE_MOST) ? add(table, text) : 1;
}

const char *text_table_text(const text_table *table, uint32_t number) {
    return number < table->count ? table->texts[number] : "";
}

void text_table_free(text_table *table) {
    for (uint32_t i = 0; i < table->count; i++)
        free(table->texts[i]);
    free(table->texts);
    free(table->slots);
    *table = (text_table){0};
}
