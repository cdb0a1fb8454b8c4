/* eddy plan */
#include "memory.h"
#include "program_file.h"
#include "program_json.h"
#include "screen.h"
#include "svg_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT 90 /* for addresses */
#define TOP 40
#define WIDTH 1100
#define HEIGHT 560
#define TICKS 8

/* A value of the arena: alive from the middle of the instruction that makes it to the middle of the last that uses it. */
typedef struct block {
    bool is_there;
    uint32_t made_by, used_by;
    int64_t offset_bytes, bytes;
} block;

/* Whose calls make values, and their bytes. */
typedef struct memory_op {
    text_piece name;
    double bytes;
} memory_op;

typedef struct memory_map {
    const char *path; /* of the program */
    const program_text *text;
    block *blocks;     /* of each value */
    int64_t top_bytes; /* of the picture: the arena's size */
    uint32_t block_count;
    memory_op *ops; /* the one with the most bytes first */
    size_t op_count;
} memory_map;

/* ---- lifetimes ---- */

static void find_blocks(memory_map *map) {
    for (uint32_t i = 0; i < map->text->instructions.count; i++) {
        const text_instruction *instruction = program_text_instruction(map->text, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const text_operand *operand =
                program_text_operand(map->text, instruction->operands_at + k);
            block *b = &map->blocks[operand->value];
            if (operand->access == TEXT_MAKES && operand->is_in_arena && !b->is_there) {
                *b = (block){true, i, i, operand->offset_bytes, operand->bytes};
                map->block_count++;
                if (b->offset_bytes + b->bytes > map->top_bytes)
                    map->top_bytes = b->offset_bytes + b->bytes;
            }
            b->used_by = i;
        }
    }
}

/* A value from before a loop that it uses is there for each of its steps. */
static void stretch_over_loop(memory_map *map, uint32_t first, uint32_t last) {
    for (uint32_t v = 0; v < map->text->values.count; v++) {
        block *b = &map->blocks[v];
        if (b->is_there && b->made_by < first && b->used_by > first && b->used_by < last)
            b->used_by = last;
    }
}

/* Inner loops end before those around them. */
static void stretch(memory_map *map) {
    uint32_t count = (uint32_t)map->text->instructions.count, open = 0;
    uint32_t *loops = tool_calloc(count, sizeof(*loops));
    for (uint32_t i = 0; i < count; i++) {
        text_piece op = program_text_instruction(map->text, i)->op;
        if (text_piece_is(op, "loop"))
            loops[open++] = i;
        else if (text_piece_is(op, "end_loop") && open > 0)
            stretch_over_loop(map, loops[--open], i);
    }
    free(loops);
}

/* ---- ops ---- */

static bool is_made_by(const memory_map *map, uint32_t value, text_piece name) {
    text_piece op = program_text_instruction(map->text, map->blocks[value].made_by)->op;
    return op.length == name.length && memcmp(op.at, name.at, op.length) == 0;
}

static int compare_bytes(const void *a, const void *b) {
    double left = ((const memory_op *)a)->bytes, right = ((const memory_op *)b)->bytes;
    return left > right ? -1 : left < right;
}

static void find_ops(memory_map *map) {
    for (uint32_t v = 0; v < map->text->values.count; v++) {
        size_t at = 0;
        if (!map->blocks[v].is_there)
            continue;
        while (at < map->op_count && !is_made_by(map, v, map->ops[at].name))
            at++;
        if (at == map->op_count)
            map->ops[map->op_count++].name =
                program_text_instruction(map->text, map->blocks[v].made_by)->op;
        map->ops[at].bytes += (double)map->blocks[v].bytes;
    }
    qsort(map->ops, map->op_count, sizeof(*map->ops), compare_bytes);
}

static size_t op_of(const memory_map *map, uint32_t value) {
    size_t at = 0;
    while (!is_made_by(map, value, map->ops[at].name))
        at++;
    return at;
}

/* ---- the picture ---- */

static double x_of(const memory_map *map, double instruction) {
    return LEFT + instruction * WIDTH / (double)map->text->instructions.count;
}

static double y_of(const memory_map *map, int64_t bytes) {
    return TOP + HEIGHT - (double)bytes * HEIGHT / (double)map->top_bytes;
}

static void put_axes(FILE *to, const memory_map *map) {
    char bytes[TOOL_CELL_BYTES];
    uint32_t count = (uint32_t)map->text->instructions.count;
    for (int t = 0; t <= TICKS; t++) {
        int64_t at = map->top_bytes / TICKS * t;
        tool_format_bytes(at, bytes);
        fprintf(to,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n<text "
                "x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT, y_of(map, at), LEFT + WIDTH, y_of(map, at), LEFT - 6, y_of(map, at) + 3,
                bytes);
    }
    for (uint32_t t = 0; t <= TICKS && t < count; t++) {
        uint32_t i = count <= TICKS ? t : (uint32_t)((uint64_t)(count - 1) * t / TICKS);
        fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRIu32 "</text>\n",
                x_of(map, i + 0.5), TOP + HEIGHT + 14, i + 1);
    }
    fprintf(to, "<text x=\"%d\" y=\"%d\">instructions</text>\n", LEFT, TOP + HEIGHT + 28);
}

/* As many of the ops as a line has room for. */
static void put_legend(FILE *to, const memory_map *map) {
    double x = LEFT + 80;
    int y = TOP + HEIGHT + 28;
    for (size_t i = 0; i < map->op_count; i++) {
        text_piece name = map->ops[i].name;
        double width = 24 + 6 * (double)name.length;
        if (x + width > LEFT + WIDTH)
            break;
        fprintf(to,
                "<rect x=\"%.0f\" y=\"%d\" width=\"9\" height=\"9\" fill=\"%s\"/>\n<text "
                "x=\"%.0f\" y=\"%d\">",
                x, y - 8, svg_color(i), x + 12, y);
        svg_put_text(to, name.at, name.length);
        fputs("</text>\n", to);
        x += width;
    }
}

static void put_block(FILE *to, const memory_map *map, uint32_t value) {
    const block *b = &map->blocks[value];
    const char *name = text_table_text(&map->text->names, value);
    text_piece op = program_text_instruction(map->text, b->made_by)->op,
               layout = program_text_value(map->text, value)->layout;
    /* What nobody uses is there while it is made. */
    double last = b->used_by > b->made_by ? b->used_by + 0.5 : b->made_by + 1;
    double x = x_of(map, b->made_by + 0.5), width = x_of(map, last) - x;
    double y = y_of(map, b->offset_bytes + b->bytes), height = y_of(map, b->offset_bytes) - y;
    fprintf(to,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
            "stroke=\"#fff\" stroke-width=\"0.5\"><title>",
            x, y, width, height < 0.5 ? 0.5 : height, svg_color(op_of(map, value)));
    svg_put_text(to, name, strlen(name));
    fputs(" ", to);
    svg_put_text(to, layout.at, layout.length);
    fputs(" = ", to);
    svg_put_text(to, op.at, op.length);
    fprintf(to,
            ": %" PRId64 " bytes at %" PRId64 ", instructions %" PRIu32 " to %" PRIu32
            "</title></rect>\n",
            b->bytes, b->offset_bytes, b->made_by + 1, b->used_by + 1);
    if (height >= 11 && width > 6 * (double)op.length) {
        fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" pointer-events=\"none\">", x + 3, y + 10);
        svg_put_text(to, op.at, op.length);
        fputs("</text>\n", to);
    }
}

static void put_picture(FILE *to, const void *picture) {
    const memory_map *map = picture;
    char arena[TOOL_CELL_BYTES], alive[TOOL_CELL_BYTES];
    tool_format_bytes(map->text->arena_bytes, arena);
    tool_format_bytes(map->text->alive_bytes, alive);
    fprintf(to, "<text x=\"%d\" y=\"20\" font-size=\"12\">", LEFT);
    svg_put_text(to, map->path, strlen(map->path));
    fprintf(to, ": arena %s, alive at once %s; %" PRIu32 " values</text>\n", arena, alive,
            map->block_count);
    if (map->top_bytes > 0) {
        put_axes(to, map);
        put_legend(to, map);
        for (uint32_t v = 0; v < map->text->values.count; v++)
            if (map->blocks[v].is_there)
                put_block(to, map, v);
    }
}

/* ---- the command ---- */

static int draw(const tool_arguments *arguments, const program_text *text) {
    memory_map map = {.path = arguments->operands[0],
                      .text = text,
                      .blocks = tool_calloc(text->values.count + 1, sizeof(block)),
                      .top_bytes = text->arena_bytes};
    find_blocks(&map);
    stretch(&map);
    map.ops = tool_calloc(map.block_count, sizeof(*map.ops));
    find_ops(&map);
    int code = svg_write(arguments, LEFT + WIDTH + 30, TOP + HEIGHT + 40, put_picture, &map);
    free(map.ops);
    free(map.blocks);
    return code;
}

int tool_plan(const tool_arguments *arguments) {
    return program_file_draw(arguments, true,
                             tool_has(arguments, "--json") ? program_json_write : draw);
}
