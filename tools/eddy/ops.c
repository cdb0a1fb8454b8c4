/* eddy ops */
#include "memory.h"
#include "op_list.h"
#include "output.h"
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAREST_MOST 5
#define NAME_MOST 64 /* longer words are like no op */

/* ---- all ---- */

static int by_family(const void *a, const void *b) {
    json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
    int order = strcmp(op_family(left), op_family(right));
    return order ? order : strcmp(op_text(left, "name"), op_text(right, "name"));
}

/* "  name   sentence", cut to the width. */
static void put_line(const json_t *op, int name_width) {
    const char *name = op_text(op, "name"), *summary = op_text(op, "summary");
    int room = tool_width() - 2 - name_width - 2, length = (int)strlen(summary);
    printf("  ");
    int at = tool_put_plain(stdout, name, strlen(name));
    printf("%*s", name_width - at + 2, "");
    if (room > 0 && length > room) {
        (void)tool_put_plain(stdout, summary, (size_t)(room > 2 ? room - 2 : 0));
        printf("..");
    } else if (room > 0) {
        (void)tool_put_plain(stdout, summary, (size_t)length);
    }
    putchar('\n');
}

static int show_all(const json_t *list) {
    size_t count = 0;
    int name_width = 0;
    for (json_t *op; (op = op_list_at(list, count)); count++)
        if ((int)strlen(op_text(op, "name")) > name_width)
            name_width = (int)strlen(op_text(op, "name"));
    json_t **ops = tool_calloc(count, sizeof(json_t *));
    for (size_t i = 0; i < count; i++)
        ops[i] = op_list_at(list, i);
    qsort(ops, count, sizeof(*ops), by_family);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(op_family(ops[i]), op_family(ops[i - 1])) != 0) {
            printf(i ? "\n" : "");
            tool_heading(op_family(ops[i]));
        }
        put_line(ops[i], name_width);
    }
    printf("\n%zu ops and functions; eddy ops NAME says all of one.\n", count);
    free(ops);
    return TOOL_OK;
}

/* ---- one ---- */

static int least(int a, int b) {
    return a < b ? a : b;
}

/* Letters that are inserted, left out or replaced (Levenshtein's distance). */
static int distance(const char *a, const char *b) {
    int row[NAME_MOST + 1];
    int width = (int)strlen(b);
    if (strlen(a) > NAME_MOST || width > NAME_MOST)
        return NAME_MOST;
    for (int j = 0; j <= width; j++)
        row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 1; j <= width; j++) {
            int replaced = diagonal + (a[i] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(replaced, least(row[j] + 1, row[j - 1] + 1));
        }
    }
    return row[width];
}

/* A name that goes on from the word is near, too, however long. */
static int nearness(const char *word, const char *name) {
    int far = distance(word, name);
    return strstr(name, word) ? least(far, 1) : far;
}

static int fail_unknown(const tool_arguments *arguments, const json_t *list, const char *word) {
    char names[512] = "";
    int shown = 0;
    for (int far = 0; far <= 1 + (int)strlen(word) / 3 && shown < NEAREST_MOST; far++) {
        json_t *op;
        for (size_t i = 0; (op = op_list_at(list, i)) && shown < NEAREST_MOST; i++) {
            size_t length = strlen(names);
            if (nearness(word, op_text(op, "name")) != far)
                continue;
            snprintf(names + length, sizeof(names) - length, "%s%s", shown ? ", " : "",
                     op_text(op, "name"));
            shown++;
        }
    }
    return tool_fail(arguments, "there is no op %s%s%s%s", word, shown ? "; near it: " : "", names,
                     shown ? "" : "; eddy ops lists them");
}

int tool_ops(const tool_arguments *arguments) {
    const char *name = arguments->operand_count > 0 ? arguments->operands[0] : NULL;
    json_t *list = op_list_load(arguments);
    if (!list)
        return TOOL_FAILED;
    int code = TOOL_OK;
    /* As C calls it, too. */
    const char *word = name && strncmp(name, "eddy_", 5) == 0 ? name + 5 : name;
    json_t *op = word ? op_list_find(list, word) : NULL;
    if (word && !op) {
        code = fail_unknown(arguments, list, word);
    } else if (tool_has(arguments, "--json")) {
        tool_put_json(stdout, op ? op : list);
    } else if (op) {
        op_page_print(op);
    } else {
        code = show_all(list);
    }
    json_decref(list);
    return code;
}
