/* Texts as numbers. 0 is "". In bounded memory: further texts are all the same one. */
#ifndef TOOLS_EDDY_TEXT_TABLE_H
#define TOOLS_EDDY_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_TABLE_MOST (1 << 20)
#define TEXT_TABLE_FIRST 2 /* of the texts that are added: those before it are "" and "(others)" */

typedef struct text_table {
    char **texts;
    uint32_t count, room, most; /* most: 0 is TEXT_TABLE_MOST */
    uint32_t *slots;            /* of numbers, + 1; 0: free */
    uint32_t slot_count;
} text_table;

/* The number of the text; of "(others)" where there is no room. */
uint32_t text_table_number(text_table *table, const char *text);
const char *text_table_text(const text_table *table, uint32_t number);
void text_table_free(text_table *table);

#endif
