#include "screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_LEAST 20
#define WIDTH_MOST 10000

int tool_width(void) {
    const char *columns = getenv("COLUMNS");
    struct winsize size = {0};
    long width = columns ? strtol(columns, NULL, 10) : 0;
    if (width <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = 80;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : (int)width;
}

bool tool_has_color(void) {
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(no && *no) && isatty(STDOUT_FILENO) && terminal && *terminal &&
           strcmp(terminal, "dumb") != 0;
}

/* ---- text ---- */

/* Cc, and what turns a line around or breaks it; of XML also what is no character. */
static bool is_shown(uint32_t code) {
    return code >= 0x20 && !(code >= 0x7f && code < 0xa0) && !(code >= 0x200e && code <= 0x200f) &&
           !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069) &&
           (code & 0xfffe) != 0xfffe;
}

int tool_character(const char *text, size_t length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)text;
    int count = c[0] < 0x80                   ? 1
                : c[0] >= 0xc0 && c[0] < 0xe0 ? 2
                : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
                : c[0] >= 0xf0 && c[0] < 0xf8 ? 4
                                              : 0;
    uint32_t code = count == 1 ? c[0] : c[0] & (0xffu >> (count + 1));
    if (count == 0 || (size_t)count > length)
        return 0;
    for (int i = 1; i < count; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (c[i] & 0x3f);
    }
    bool is_one = code >= least[count] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return is_one && is_shown(code) ? count : 0;
}

void tool_clean(char *to, size_t size, const char *text, size_t length) {
    const char *end = text + length, *last = to + size - 1;
    while (text < end) {
        int count = tool_character(text, (size_t)(end - text));
        if (to + (count > 0 ? count : 1) > last)
            break;
        if (count == 0) {
            *to++ = '?';
            text++;
        }
        for (; count > 0; count--)
            *to++ = *text++;
    }
    *to = '\0';
}

/* The next character of a text that a 0 ends, or the byte that is none; its bytes. */
static int next(const char *text) {
    int count = tool_character(text, 4);
    return count > 0 ? count : 1;
}

static int characters(const char *text, const char *end) {
    int count = 0;
    for (; text < end; text += next(text))
        count++;
    return count;
}

static int all_characters(const char *text) {
    return characters(text, text + strlen(text));
}

int tool_put_plain(FILE *to, const char *text, size_t length) {
    const char *end = text + length;
    int shown = 0;
    for (; text < end; shown++) {
        int count = tool_character(text, (size_t)(end - text));
        fwrite(count > 0 ? text : "?", 1, count > 0 ? (size_t)count : 1, to);
        text += count > 0 ? count : 1;
    }
    return shown;
}

#define LINE_LEAST 10

/* Words that are longer than a line go on in the next one. */
static void put_lines(const char *text, int indent, int at) {
    int width = tool_width(), left = indent + LINE_LEAST > width ? 4 : indent;
    bool is_first = at <= indent && left == indent;
    while (*text) {
        const char *end = text + strcspn(text, " ");
        bool fits = at + !is_first + characters(text, end) <= width;
        if (!is_first && fits)
            at += printf(" ");
        else if (!is_first)
            at = printf("\n%*s", left, "") - 1;
        for (; text < end; text += next(text), at++) {
            if (at >= width)
                at = printf("\n%*s", left, "") - 1;
            (void)tool_put_plain(stdout, text, (size_t)next(text));
        }
        is_first = false;
        text = end + strspn(end, " ");
    }
}

void tool_wrap(const char *text, int indent, int at) {
    put_lines(text, indent, at);
    putchar('\n');
}

void tool_heading(const char *text) {
    bool is_bold = tool_has_color();
    if (is_bold)
        printf("\033[1m");
    put_lines(text, 0, 0);
    printf(is_bold ? "\033[0m\n" : "\n");
}

void tool_say(const char *format, ...) {
    char text[TOOL_LINE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    tool_wrap(text, 0, 0);
}

/* ---- tables ---- */

/* In `room` columns: of a longer text the end. */
static void put_text(const char *text, int room) {
    int count = all_characters(text), used = 0;
    if (count > room) {
        for (int skip = count - room + 2; skip > 0 && *text; skip--)
            text += next(text);
        printf("..");
        used = 2;
    }
    for (; *text; text += next(text), used++)
        (void)tool_put_plain(stdout, text, (size_t)next(text));
    printf("%*s", room > used ? room - used : 0, "");
}

static int most(int a, int b) {
    return a > b ? a : b;
}

void tool_table_print(const tool_table *table, const tool_row *rows, size_t count) {
    int widths[TOOL_COLUMNS_MOST] = {0}, rest = 0, columns = table->column_count;
    for (int c = 0; c < columns; c++)
        widths[c] = all_characters(table->headings[c]);
    for (size_t r = 0; r < count; r++) {
        widths[0] = most(widths[0], all_characters(rows[r].text));
        for (int c = 1; c < columns; c++)
            widths[c] = most(widths[c], all_characters(rows[r].cells[c - 1]));
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
