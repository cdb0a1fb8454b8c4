/* A program: code, its bindings, and the executable made of it.
 *
 *   recording --eddy_record_end--> program (const) --eddy_program_run--> one instruction of the VM for each run
 *
 * Everything but the count of references is const after eddy_record_end, so that any threads may run it at once: what a run changes
 * lies in the run's frame. A run holds a reference until the VM has ended its instruction.
 *
 * Externals are the values that are there before a run: operands 0 .. of its instruction in the VM. Made values that are outputs are the
 * operands behind them, new storages of each run. */
#ifndef EDDY_PROGRAM_PROGRAM_H
#define EDDY_PROGRAM_PROGRAM_H

#include <base/atomic.h>
#include <eddy/program.h>
#include <eddy/recorded.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/tensor.h>
#include <program/bases.h>
#include <program/code.h>
#include <program/executable.h>

struct eddy_built; /* build_cache.h */

typedef struct eddy_program_external {
    uint32_t value;
    uint32_t input;      /* index among the inputs; EDDY_CODE_NONE: state, constant or captured */
    eddy_tensor *tensor; /* a reference of the root; NULL for inputs */
    bool is_covered;     /* an instruction writes all of it */
    /* The root's for the tape when the recording ended; no reference. */
    eddy_autograd autograd;
    uint32_t view_leaves;
} eddy_program_external;

/* A value made by the program that outputs show. */
typedef struct eddy_program_made {
    uint32_t value;
    /* The first output that is all of its storage, by its number among the outputs; EDDY_CODE_NONE: none is. */
    uint32_t whole;
} eddy_program_made;

typedef struct eddy_program_binding {
    char *name; /* owned */
    uint32_t value;
    uint32_t operand; /* of a run's instruction: an external, or a made output */
    uint8_t role;     /* eddy_role; EDDY_ROLE_INPUT of a donated one too */
    bool is_donated;  /* an input whose memory a run takes */
    uint8_t dtype;
    int8_t device_kind, device_index;
    bool is_whole; /* all of its value's storage, each element once */
    bool
        is_storage; /* all of its value's storage as a row of bytes, whatever it holds: what the tape saves (gradient.h). An output has no name then */
    bool is_covered; /* state: an instruction writes all of it, whatever it held */
    bool
        has_own_gradient; /* state: recorded calls use the gradient that it had, which has no name */
    uint32_t version;     /* of a constant's root, when the recording ended */
    int64_t count;        /* elements */
    eddy_layout layout;   /* as recorded; offsets within an input count from its first element */
} eddy_program_binding;

/* What a run leaves as the gradient of an output of a node, as the recorded calls did. */
typedef struct eddy_program_kept {
    struct eddy_autograd_node *node; /* a reference */
    uint32_t output;
    uint32_t binding; /* index of the gradient's; EDDY_CODE_NONE: none is kept */
    uint32_t
        state; /* index of the state whose leaf the node is; EDDY_CODE_NONE: it is no state's */
} eddy_program_kept;

/* A binding without a name that behaves as an output, and goes to a node. */
#define EDDY_PROGRAM_KEPT 5

struct eddy_program {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    eddy_runtime *runtime;       /* bound */
    _Atomic int64_t feed_copies; /* atomic: relaxed; inputs of runs that were on another device */
    eddy_code code;
    eddy_code_array externals; /* eddy_program_external */
    /* eddy_program_binding, in the order given; then those of kept gradients. */
    eddy_code_array bindings;
    eddy_code_array kept;         /* eddy_program_kept */
    eddy_code_array befores;      /* eddy_kept_before: of a recorded function's program */
    eddy_code_array seen_of_tape; /* eddy_tape_seen: likewise */
    eddy_code_array generators;   /* eddy_generator *, a reference each */
    eddy_code_array
        inner; /* eddy_program *, a reference each: programs within it (inlined.h) whose constants it reads */
    eddy_code_array made; /* eddy_program_made: their operands follow those of the externals */
    uint32_t input_count, output_count;
    uint32_t state_count, constant_count; /* storages */
    uint32_t donated_count;               /* inputs */
    uint32_t handle_count; /* new handles of a run: of outputs, then of kept gradients */
    uint32_t passes;       /* that it is built with: a bit for each */
    /* A reference until the build: the code is what the passes have left at other sizes (lower.h). NULL. */
    eddy_arena_layout *layout;
    bool uses_tape;      /* what it computes depends on which gradients are kept, or who gets one */
    bool uses_kept;      /* on which are kept */
    bool sees_beyond;    /* on anything of the tape: what is not noted one by one */
    bool has_devices;    /* some of its values are on other devices than the CPU */
    bool has_registered; /* ops of the program's own, which run on workers alone */
    struct eddy_built
        *built; /* a reference: the executable, which programs share, and what it was made of */
    const eddy_executable *executable; /* that of `built`; NULL before the build */
    struct eddy_program_variants
        *variants; /* owned: programs for some outputs (variant.h), or NULL */
    struct eddy_program_gradient
        *gradient; /* owned: how gradients go back through a run (gradient.h), or NULL */
};

static inline eddy_program_external *eddy_program_external_at(const eddy_program *program,
                                                              uint32_t i) {
    return (eddy_program_external *)program->externals.items + i;
}
static inline eddy_program_made *eddy_program_made_at(const eddy_program *program, uint32_t i) {
    return (eddy_program_made *)program->made.items + i;
}
static inline eddy_program_binding *eddy_program_binding_at(const eddy_program *program,
                                                            uint32_t i) {
    return (eddy_program_binding *)program->bindings.items + i;
}

/* Says in a binding where its value is. */
static inline void eddy_program_binding_place(const eddy_program *program,
                                              eddy_program_binding *binding) {
    eddy_device device = eddy_code_value_device(eddy_code_value_at(&program->code, binding->value));
    binding->device_kind = (int8_t)device.kind;
    binding->device_index = (int8_t)device.index;
}

/* Whether a pointer from the user is a program that lives. INVALID_ARGUMENT, recorded. */
EDDY_MUST_USE eddy_status eddy_program_check(const eddy_program *program, eddy_origin origin);
/* Whether a list has items, if its count is not 0; `what` names them in the message. */
EDDY_MUST_USE eddy_status eddy_program_check_list(const void *items, int64_t count,
                                                  const char *what, eddy_origin origin);

/* Whether constants are as they were recorded, or loaded. INVALID_ARGUMENT, recorded. */
EDDY_MUST_USE eddy_status eddy_program_check_constants(const eddy_program *program,
                                                       eddy_origin origin);

/* Gives up captured storages that no instruction uses: inputs show what they did, or it was dead code. OUT_OF_MEMORY, recorded. */
EDDY_MUST_USE eddy_status eddy_program_drop_unused(eddy_program *program, eddy_origin origin);

/* Numbers the operands of a run's instruction and says of each value where it is. OUT_OF_MEMORY, recorded. */
EDDY_MUST_USE eddy_status eddy_program_number_operands(eddy_program *program, eddy_bases *bases,
                                                       eddy_origin origin);

/* Runs the passes and makes the executable, or finds one: once, before others see the program. OUT_OF_MEMORY, or a kernel's failure to prepare, recorded.
 * Of a program that lowered ones foretell: INVALID_ARGUMENT, recorded, where what they have in common does not hold at its size. */
EDDY_MUST_USE eddy_status eddy_program_build(eddy_program *program, eddy_origin origin);

/* eddy_program_run with the numbers that the program was recorded with, on the path (path.h) of one that has marks where its function reads: such a run is waited for. unfit: where
 * an input shares memory that the program writes, a number is none that its op takes, or the run has left the path, it is set to a static sentence, no error is recorded and nothing has
 * happened; NULL: the run fails. */
EDDY_MUST_USE eddy_status eddy_program_run_with(eddy_program *program, eddy_list inputs,
                                                const eddy_scalar *scalars, eddy_tensor **outputs,
                                                struct eddy_path *path, const char **unfit,
                                                eddy_origin origin);

/* A copy of the externals in an empty array, with references of its own; false without memory. */
EDDY_MUST_USE bool eddy_program_externals_copy(eddy_code_array *to, const eddy_code_array *from);
/* What it depends on of the tape, in a program that has nothing of that yet; false without memory. */
EDDY_MUST_USE bool eddy_program_tape_copy(eddy_program *to, const eddy_program *from);

/* Whether the tensors that the program holds, and views of them, want gradients, or do not, as when it was recorded. */
bool eddy_program_has_wants(const eddy_program *program);

/* ---- bindings by name ---- */

/* Those that have one are the first: kept gradients follow. */
uint32_t eddy_program_named_count(const eddy_program *program);
/* The number of a binding among those of its role; -1 if there is none. And the binding of such a number; NULL if there is none. */
int64_t eddy_program_find(const eddy_program *program, eddy_role role, const char *name);
const eddy_program_binding *eddy_program_binding_of(const eddy_program *program, eddy_role role,
                                                    int64_t number);
/* Records that there is no input (output) of this name, and which there are. INVALID_ARGUMENT. */
EDDY_MUST_USE eddy_status eddy_program_refuse_name(const eddy_program *program, eddy_role role,
                                                   const char *name, eddy_origin origin);
/* Their names, for messages: "x, y", cut where there is no room, "none" if there are none. */
void eddy_program_list_names(const eddy_program *program, eddy_role role, char *buffer,
                             size_t size);

/* Holds the generators of another program, too; false without memory. */
EDDY_MUST_USE bool eddy_program_hold_generators(eddy_program *program, const eddy_program *of);

/* ---- inner programs (eddy_program.inner) ---- */

/* Adds a reference, unless there is one; false without memory. */
EDDY_MUST_USE bool eddy_program_inner_add(eddy_code_array *inner, eddy_program *program);
EDDY_MUST_USE bool eddy_program_inner_copy(eddy_code_array *to, const eddy_code_array *from);
void eddy_program_inner_fini(eddy_code_array *inner);

/* A copy of a name, the caller's; NULL without memory. */
char *eddy_program_name_copy(const char *name);

/* Why two recordings of a function are not the same program, as a sentence; "" where they are. */
void eddy_program_compare(const eddy_program *a, const eddy_program *b, char *reason, size_t size);

/* Whether two programs hold the same tensors and generators, and leave the same gradients. */
bool eddy_program_has_same_tensors(const eddy_program *a, const eddy_program *b);

/* What a program takes, without the tensors that it holds, its backward programs and variants included. */
int64_t eddy_program_bytes(const eddy_program *program);

/* A program without code, of one reference; NULL without memory. */
eddy_program *eddy_program_create(eddy_runtime *runtime);
/* Frees what there is of a program, half made ones too. */
void eddy_program_destroy(eddy_program *program);

#endif
