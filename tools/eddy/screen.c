#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_LEAST 20

int tool_width(void) {
    const char *columns = getenv("COLUMNS");
    struct winsize size = {0};
    int width = columns ? atoi(columns) : 0;
    if (width <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = 80;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width;
}

bool tool_has_color(void) {
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(no && *no) && isatty(STDOUT_FILENO) && terminal && *terminal &&
           strcmp(terminal, "dumb") != 0;
}

void tool_heading(const char *text) {
    if (tool_has_color())
        printf("\033[1m%s\033[0m\n", text);
    else
        printf("%s\n", text);
}

/* Characters of UTF-8: bytes that continue one are none. */
static int characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* Without what a terminal would take for a command. */
static void put_text(const char *text, int room) {
    int count = characters(text), used = 0;
    if (count > room) {
        for (int skip = count - room + 2; skip > 0 && *text; skip--)
            do
                text++;
            while (((unsigned char)*text & 0xc0) == 0x80);
        printf("..");
        used = 2;
    }
    for (; *text; text++) {
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
        used += ((unsigned char)*text & 0xc0) != 0x80;
    }
    printf("%*s", room > used ? room - used : 0, "");
}

static int most(int a, int b) {
    return a > b ? a : b;
}

void tool_table_print(const tool_table *table, const tool_row *rows, size_t count) {
    int widths[TOOL_COLUMNS_MOST] = {0}, rest = 0, columns = table->column_count;
    for (int c = 0; c < columns; c++)
        widths[c] = characters(table->headings[c]);
    for (size_t r = 0; r < count; r++) {
        widths[0] = most(widths[0], characters(rows[r].text));
        for (int c = 1; c < columns; c++)
            widths[c] = most(widths[c], characters(rows[r].cells[c - 1]));
    }
    /* Columns that a narrow screen has no room for are left out, from the right. */
    for (int c = 1; c < columns; c++) {
        if (rest + widths[c] + 2 + 8 > tool_width()) {
            columns = c;
            break;
        }
        rest += widths[c] + 2;
    }
    if (widths[0] > tool_width() - rest)
        widths[0] = tool_width() - rest;
    put_text(table->headings[0], widths[0]);
    for (int c = 1; c < columns; c++)
        printf("  %*s", widths[c], table->headings[c]);
    putchar('\n');
    for (size_t r = 0; r < count; r++) {
        put_text(rows[r].text, widths[0]);
        for (int c = 1; c < columns; c++)
            printf("  %*s", widths[c], rows[r].cells[c - 1]);
        putchar('\n');
    }
}

/* Three digits: 1.23, 12.3, 123, of 1000 a unit. */
static void format(double value, const char *const *units, int unit_count, double step,
                   char *cell) {
    int unit = 0;
    double size = value < 0 ? -value : value;
    while (unit < unit_count - 1 && size >= 999.5) {
        size /= step;
        value /= step;
        unit++;
    }
    int digits = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(cell, TOOL_CELL_BYTES, "%.*f %s", digits, value, units[unit]);
}

void tool_format_ns(int64_t ns, char cell[TOOL_CELL_BYTES]) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    format((double)ns, units, 4, 1000, cell);
}

void tool_format_bytes(int64_t bytes, char cell[TOOL_CELL_BYTES]) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    format((double)bytes, units, 5, 1000, cell);
}

void tool_format_count(int64_t count, char cell[TOOL_CELL_BYTES]) {
    snprintf(cell, TOOL_CELL_BYTES, "%lld", (long long)count);
}

void tool_format_share(int64_t part, int64_t whole, char cell[TOOL_CELL_BYTES]) {
    cell[0] = '\0';
    if (whole > 0)
        snprintf(cell, TOOL_CELL_BYTES, "%.1f %%", 100 * (double)part / (double)whole);
}
