#include "svg_parts.h"

#include "output.h"
#include "screen.h"
#include <stdint.h>
#include <string.h>

typedef struct svg_page {
    int width, height;
    void (*put)(FILE *to, const void *picture);
    const void *picture;
} svg_page;

static void put_page(FILE *to, const void *page_to_put) {
    const svg_page *page = page_to_put;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"9\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#fff\"/>\n",
            page->width, page->height);
    page->put(to, page->picture);
    fputs("</svg>\n", to);
}

int svg_write(const tool_arguments *arguments, int width, int height,
              void (*put)(FILE *to, const void *picture), const void *picture) {
    return tool_output(arguments, put_page, &(svg_page){width, height, put, picture});
}

/* XML has no control characters, and what a file had may be no UTF-8. */
static void put_character(FILE *to, const char *text, int count) {
    if (count > 0)
        fwrite(text, 1, (size_t)count, to);
    else
        fputc('?', to);
}

void svg_put_text(FILE *to, const char *text, size_t length) {
    for (const char *end = text + length; text < end;) {
        int count = tool_character(text, (size_t)(end - text));
        switch (*text) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        default:
            put_character(to, text, count);
        }
        text += count > 0 ? count : 1;
    }
}

const char *svg_color(size_t number) {
    static const char *const colors[] = {"#cb4d4d", "#62da85", "#b581da", "#d3c245", "#69c2d3",
                                         "#e07bb2", "#6dcb4d", "#6762da", "#da9f81", "#45d39e",
                                         "#cb69d3", "#cbe07b", "#4d8ccb", "#da627b", "#81da88",
                                         "#7b45d3", "#d3b069", "#7be0dc", "#cb4dac", "#99da62"};
    return colors[number % (sizeof(colors) / sizeof(*colors))];
}

const char *svg_op_color(const char *name, size_t length) {
    uint32_t hash = 2166136261u;
    for (const char *end = name + length; name < end; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return svg_color(hash);
}
