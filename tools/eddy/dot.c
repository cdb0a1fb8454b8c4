/* eddy dot */
#include "memory.h"
#include "program_file.h"
#include "program_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value that an instruction uses, as its producer left it. from: 1 + an instruction; 0: as it was before the run. */
typedef struct graph_edge {
    uint32_t value, from, to;
} graph_edge;

/* A branch or loop that is open: the mark it begins with, and else(). */
typedef struct graph_region {
    uint32_t first, turn;
} graph_region;

typedef struct graph {
    const program_text *text;
    uint32_t *writers; /* of each value the last so far: 1 + an instruction; 0: none */
    uint32_t *others;  /* the same of the first way of a branch that both ways write it on */
    graph_edge *edges; /* of the instructions so far */
    size_t edge_count;
    graph_region *regions; /* those that are open */
    size_t region_count;
    uint32_t group; /* that is open */
} graph;

static void put_piece(text_piece piece) {
    for (size_t i = 0; i < piece.length; i++) {
        unsigned char byte = (unsigned char)piece.at[i];
        if (byte == '"' || byte == '\\')
            putchar('\\');
        /* Names that are no UTF-8 would be none of dot's either. */
        putchar(byte < 0x20 || byte >= 0x7f ? '?' : byte);
    }
}

static text_piece name_of(const graph *g, uint32_t value) {
    const char *name = text_table_text(&g->text->names, value);
    return (text_piece){name, strlen(name)};
}

/* ---- nodes ---- */

static void put_values(const graph *g) {
    static const char *const looks[] = {
        [TEXT_INPUT] = "shape=invhouse, fillcolor=\"#cfe8cf\", tooltip=input",
        [TEXT_DONATED] = "shape=invhouse, fillcolor=\"#e8e0b8\", tooltip=donated",
        [TEXT_STATE] = "shape=cylinder, fillcolor=\"#cfdcf0\", tooltip=state",
        [TEXT_CONSTANT] = "shape=cylinder, fillcolor=\"#e4e4e4\", tooltip=constant",
        [TEXT_CAPTURED] = "shape=cylinder, fillcolor=\"#f0e6d8\", tooltip=captured"};
    for (uint32_t v = 0; v < g->text->values.count; v++) {
        const text_value *value = program_text_value(g->text, v);
        if (value->role == TEXT_MADE)
            continue;
        printf("    v%" PRIu32 " [%s, label=\"", v, looks[value->role]);
        put_piece(name_of(g, v));
        printf("\\n");
        put_piece(value->layout);
        printf("\"];\n");
    }
}

/* A rhombus where the way goes on. */
static void put_instruction(const graph *g, uint32_t i) {
    const text_instruction *instruction = program_text_instruction(g->text, i);
    bool is_mark =
        text_piece_is(instruction->op, "if") || text_piece_is(instruction->op, "loop_while");
    printf("    i%" PRIu32 " [%slabel=\"", i, is_mark ? "shape=diamond, " : "");
    put_piece(instruction->op);
    for (uint32_t k = 0; k < instruction->result_count; k++) {
        printf("\\n");
        put_piece(program_text_operand(g->text, instruction->operands_at + k)->layout);
    }
    printf("\", tooltip=\"");
    put_piece(instruction->attributes);
    printf("\"];\n");
}

/* ---- edges ---- */

static void put_edge(const graph *g, graph_edge edge, const char *look) {
    if (edge.from > 0)
        printf("    i%" PRIu32, edge.from - 1);
    else
        printf("    v%" PRIu32, edge.value);
    printf(" -> i%" PRIu32 " [label=\"", edge.to);
    if (edge.from > 0)
        put_piece(name_of(g, edge.value));
    printf("\"%s];\n", look);
}

/* What the instruction uses, then what it has written: a value that it sets whole it does not use. */
static void put_uses(graph *g, uint32_t i) {
    const text_instruction *instruction = program_text_instruction(g->text, i);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const text_operand *operand = program_text_operand(g->text, instruction->operands_at + k);
        graph_edge edge = {operand->value, g->writers[operand->value], i};
        bool is_known =
            edge.from > 0 || program_text_value(g->text, operand->value)->role != TEXT_MADE;
        if (operand->access == TEXT_MAKES || operand->access == TEXT_SETS || !is_known)
            continue;
        put_edge(g, edge, "");
        g->edges[g->edge_count++] = edge;
        edge.from = g->others[operand->value];
        if (edge.from > 0)
            put_edge(g, edge, "");
    }
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const text_operand *operand = program_text_operand(g->text, instruction->operands_at + k);
        if (operand->access != TEXT_READS) {
            g->writers[operand->value] = i + 1;
            g->others[operand->value] = 0;
        }
    }
}

/* What a step of the loop that begins at `first` leaves for the next one. */
static void put_back_edges(const graph *g, uint32_t first) {
    for (size_t e = 0; e < g->edge_count; e++) {
        graph_edge edge = g->edges[e];
        uint32_t writer = g->writers[edge.value];
        if (edge.to >= first && edge.from < first + 1 && writer > first) {
            edge.from = writer;
            put_edge(g, edge, ", style=dashed, constraint=false");
        }
    }
}

/* What the first way of a branch has written is there behind it, too, if the second has written the same. */
static void join_ways(const graph *g, graph_region region) {
    for (uint32_t i = region.first; i < region.turn; i++) {
        const text_instruction *instruction = program_text_instruction(g->text, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const text_operand *operand =
                program_text_operand(g->text, instruction->operands_at + k);
            if (operand->access != TEXT_READS && g->writers[operand->value] > region.turn)
                g->others[operand->value] = i + 1;
        }
    }
}

static void put_edges(graph *g, uint32_t i) {
    text_piece op = program_text_instruction(g->text, i)->op;
    if (text_piece_is(op, "loop") || text_piece_is(op, "if"))
        g->regions[g->region_count++] = (graph_region){i, i};
    put_uses(g, i);
    if (g->region_count == 0)
        return;
    graph_region *region = &g->regions[g->region_count - 1];
    if (text_piece_is(op, "else"))
        region->turn = i;
    else if (text_piece_is(op, "end_if"))
        join_ways(g, *region);
    else if (text_piece_is(op, "end_loop"))
        put_back_edges(g, region->first);
    if (text_piece_is(op, "end_if") || text_piece_is(op, "end_loop"))
        g->region_count--;
}

/* ---- regions ---- */

static void begin_cluster(uint32_t number, const char *kind, const text_instruction *of) {
    printf("    subgraph cluster_%s%" PRIu32 " {\n    color=\"#909090\"; label=\"", kind, number);
    if (of)
        put_piece(of->op);
    else
        printf("fused");
    if (of && of->attributes.length > 0) {
        printf(" ");
        put_piece(of->attributes);
    }
    printf("\";\n");
}

static void put_group(graph *g, uint32_t group) {
    if (g->group == group)
        return;
    if (g->group > 0)
        printf("    }\n");
    if (group > 0)
        begin_cluster(group, "group", NULL);
    g->group = group;
}

/* Branches and loops are boxes, and their marks no nodes, but for those that decide. */
static void put_step(graph *g, uint32_t i) {
    const text_instruction *instruction = program_text_instruction(g->text, i);
    text_piece op = instruction->op;
    put_group(g, instruction->group);
    bool begins = text_piece_is(op, "if") || text_piece_is(op, "loop"),
         ends = text_piece_is(op, "end_if") || text_piece_is(op, "end_loop"),
         turns = text_piece_is(op, "else");
    if (ends || turns)
        printf("    }\n");
    if (begins || turns)
        begin_cluster(i, "region", instruction);
    if (!ends && !turns && !text_piece_is(op, "loop"))
        put_instruction(g, i);
}

/* What a run leaves: values that were there before, and outputs. */
static void put_results(const graph *g) {
    for (uint32_t v = 0; v < g->text->values.count; v++)
        if (program_text_value(g->text, v)->role != TEXT_MADE && g->writers[v] > 0)
            printf("    i%" PRIu32 " -> v%" PRIu32 " [style=dashed, constraint=false];\n",
                   g->writers[v] - 1, v);
    for (size_t o = 0; o < g->text->outputs.count; o++) {
        const text_output *output = program_text_output(g->text, o);
        uint32_t writer = g->writers[output->value];
        printf("    o%zu [shape=house, fillcolor=\"#f0cfcf\", tooltip=output, label=\"", o);
        put_piece(output->name);
        printf("\\n");
        put_piece(output->layout);
        printf("\"];\n    %s%" PRIu32 " -> o%zu;\n", writer ? "i" : "v",
               writer ? writer - 1 : output->value, o);
    }
}

static void put_graph(graph *g) {
    printf("digraph program {\n    graph [fontname=\"sans-serif\", fontsize=10];\n    node "
           "[shape=box, style=filled, fillcolor=\"#ffffff\", "
           "fontname=\"sans-serif\", fontsize=10];\n    edge [fontname=\"sans-serif\", "
           "fontsize=8];\n");
    put_values(g);
    uint32_t count = (uint32_t)g->text->instructions.count;
    for (uint32_t i = 0; i < count; i++)
        put_step(g, i);
    put_group(g, 0);
    for (uint32_t i = 0; i < count; i++)
        put_edges(g, i);
    put_results(g);
    printf("}\n");
}

/* ---- the command ---- */

static int draw(const tool_arguments *arguments, const program_text *text) {
    graph g = {.text = text,
               .writers = tool_calloc(text->values.count + 1, sizeof(uint32_t)),
               .edges = tool_calloc(text->operands.count + 1, sizeof(graph_edge)),
               .others = tool_calloc(text->values.count + 1, sizeof(uint32_t)),
               .regions = tool_calloc(text->instructions.count + 1, sizeof(graph_region))};
    (void)arguments;
    put_graph(&g);
    free(g.writers);
    free(g.edges);
    free(g.others);
    free(g.regions);
    return TOOL_OK;
}

int tool_dot(const tool_arguments *arguments) {
    return program_file_draw(arguments, false,
                             tool_has(arguments, "--json") ? program_json_write : draw);
}
