#include <tests/program/numbered.h>

#include <criterion/criterion.h>
#include <interpreter/handle/caller.h>
#include <program/program.h>

#define FIRST_SLOT 900

static const eddy_origin origin = {"test", NULL};

eddy_recording *record_numbers(eddy_scalar *numbers, uint32_t count) {
    eddy_recording *recording;
    cr_assert_eq(eddy_recording_open(eddy_caller_get(), origin, &recording), EDDY_OK);
    recording->first_slot = FIRST_SLOT;
    recording->scalars = numbers;
    recording->scalar_count = count;
    for (uint32_t i = 0; i < count; i++)
        numbers[i].slot = FIRST_SLOT + i;
    return recording;
}

eddy_program *end_numbers(eddy_recording *recording, const eddy_bindings *bindings) {
    eddy_program *program;
    cr_assert_str_empty(recording->lost);
    cr_assert_eq(eddy_recording_close(eddy_caller_get()), recording);
    cr_assert_eq(eddy_program_make(recording, bindings, origin, &program), EDDY_OK);
    eddy_recording_destroy(recording);
    cr_assert_eq(eddy_program_build(program, origin), EDDY_OK);
    return program;
}
