#include "texts.h"

#include <criterion/criterion.h>
#include <program/print.h>
#include <stdio.h>
#include <stdlib.h>
#include <tests/program/outcome.h>

char *printed_of(const eddy_program *program, bool shows_plan) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    must(eddy_program_print(program, file, EDDY_OPTIONS(program_print, .shows_plan = shows_plan)));
    fclose(file);
    return text;
}

void keep_text(const eddy_program *program, const char *name) {
    const char *folder = getenv("EDDY_TEST_TEXTS");
    char path[4096];
    eddy_printed printed;
    if (!folder)
        return;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && eddy_printed_make(&printed, program, EDDY_PRINT_READING), "%s", path);
    cr_assert_eq(fwrite(printed.text, 1, printed.length, file), printed.length);
    eddy_printed_fini(&printed);
    fclose(file);
}
