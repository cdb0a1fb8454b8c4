/* The executable of a program: a flat array of steps, in the order of the code. A step is an instruction, or a group of them.
 *
 *   step --run--> kernel       places (base, offset) of its operands; everything else was prepared when the program was made
 *   frame                      what one run changes: the table of bases, words (drawn and given numbers), an error, scratch memory
 *
 * A base is the memory that offsets count from: base 0 is the run's arena, base 1 + i operand i of the run's instruction in the VM
 * (the program's externals, then the outputs that it makes). So the steps are the same for every run, and several runs may be
 * under way at once. */
#ifndef EDDY_PROGRAM_EXECUTABLE_H
#define EDDY_PROGRAM_EXECUTABLE_H

#include <base/hash.h>
#include <interpreter/call/packed.h>
#include <program/arena_layout.h>
#include <program/code.h>
#include <program/late_draws.h>
#include <program/partitions.h>
#include <program/step_rows.h>
#include <program/streams.h>
#include <string.h>
#include <vm/vm.h>

typedef struct eddy_place {
    int64_t offset; /* bytes */
    uint32_t base;
    uint32_t view; /* of an operand: its index among the call's views */
} eddy_place;

#define EDDY_STEP_PLACES 4

/* A prepared call: instructions that differ in places alone share it. */
typedef struct eddy_prepared_call {
    eddy_packed_arguments *packed;
    const eddy_vm_descriptor *descriptor;
    size_t bytes; /* of the packed block, acquired with EDDY_MEMORY_PROGRAM */
    int64_t workspace_bytes;
    int64_t cost_ps;
    eddy_digest digest; /* of the block before it was prepared */
    /* Behind the block: the call's views without data, and the strides in bytes of a step that calls a loop: EDDY_STEP_PLACES within
     * a row, then as many from row to row. */
    eddy_op_view *views;
    int64_t *loop_strides;
} eddy_prepared_call;

/* A word of a run that goes to a word of an instruction's attributes. */
typedef struct eddy_patch {
    uint32_t from, to;
} eddy_patch;

/* Where a run goes on at a mark (control.h), which is a step that does nothing. */
typedef struct eddy_jump {
    uint32_t step;
    uint32_t
        to_step; /* else, end_loop, and where the predicate is false; elsewhere it goes on with the next step */
    uint32_t to_jump;              /* the first jump that is not before to_step */
    uint32_t over_step, over_jump; /* behind the region */
    uint32_t begin, end;           /* instructions of the region: its first and last mark */
    uint32_t
        loop; /* loop, loop_while: the number of the loop's first jump, whose steps are counted */
    uint8_t control;      /* eddy_control */
    eddy_place predicate; /* or what is read */
    int64_t most_steps;   /* loop_while; 0: no bound */
} eddy_jump;

/* What a front does with a base. */
typedef struct eddy_front_base {
    bool is_used, is_written; /* by its steps */
    uint32_t operand;         /* of a front's run */
    int64_t
        kept_bytes; /* written, and put back where the path is left: from where the base begins */
} eddy_front_base;

/* The part of a run up to the last mark where the recorded function has read (front.h). */
typedef struct eddy_front {
    uint32_t read_count;       /* such marks; 0: there is no front */
    uint32_t steps, jumps;     /* that it has, the last mark included */
    uint32_t recorded_count;   /* of the code's, that are in it */
    uint32_t operand_count;    /* bases that it uses, but for the arena */
    eddy_front_base *bases;    /* per base, or NULL */
    int64_t front_ps, back_ps; /* estimated times of both parts */
} eddy_front;

typedef struct eddy_frame eddy_frame;
typedef struct eddy_step eddy_step;
typedef struct eddy_fused eddy_fused; /* fused.h */

/* Calls that may be one (fusions.h), in the order of the run. */
typedef struct eddy_fusions {
    struct eddy_fused_calls *items;
    uint32_t count, room;
} eddy_fusions;

struct eddy_step {
    void (*run)(const eddy_step *step, eddy_frame *frame);
    union {
        /* One call of an elementwise loop, or one for each of a few rows. */
        struct {
            eddy_loop_fn *loop;
            const void *attributes;
            const int64_t *strides;
            int64_t rows;
            int64_t count; /* of a row */
            int64_t offsets[EDDY_STEP_PLACES];
            uint32_t bases[EDDY_STEP_PLACES];
        } loop;
        /* Any kernel. */
        struct {
            const eddy_prepared_call *call;
            const eddy_place *places; /* of the first elements of views that are not absent */
            int64_t workspace_at;     /* in the arena; -1: none */
            uint32_t place_count;
            const eddy_patch *patches;
            uint32_t patch_count;
            bool wants_helpers; /* it takes longer than a hand-over */
            uint32_t draw;      /* of a late draw: its number */
        } kernel;
        const eddy_fused *fused; /* a group */
    };
};

struct eddy_frame {
    char **bases;
    const int64_t *words;  /* seed and counter of each draw, then the numbers given */
    eddy_late_draws *late; /* whose words they are; NULL: they do not change */
    eddy_kernel_team *team;
    eddy_kernel_error error;
    void **data;          /* room for the operands of one step, for who looks at them */
    eddy_op_view *views;  /* room for the views of one step */
    int64_t *copy;        /* room for the attributes of one step that is patched */
    int64_t *step_counts; /* per jump: the steps that its loop has taken */
    uint32_t skipped;     /* a bit for each member of a group that does not run */
    struct eddy_backend_launch *launch; /* of the step, in rounds (rounds.h); else NULL */
    const struct eddy_health *traced;   /* of the run, where somebody hears of its steps; else NULL */
};

/* `bytes` of the memory at *at, which begins at a line and goes on behind them at one. */
static inline size_t eddy_frame_lined(size_t bytes) {
    return (bytes + EDDY_CACHE_LINE - 1) / EDDY_CACHE_LINE * EDDY_CACHE_LINE;
}

static inline void *eddy_frame_take(char **at, size_t bytes) {
    char *taken = *at;
    *at += eddy_frame_lined(bytes);
    return taken;
}

/* Fills in frame->data with the memory of storages at these places; NULL for empty ones. */
static inline void eddy_frame_find(const eddy_frame *frame, const eddy_place *places,
                                   uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char *base = frame->bases[places[i].base];
        frame->data[i] = base ? base + places[i].offset : NULL;
    }
}

struct eddy_executable {
    eddy_step *steps;
    uint32_t step_count;
    uint32_t instruction_count; /* of the code */
    uint32_t *first_of; /* per step, and the number of instructions: its first instruction */
    eddy_jump *jumps;   /* in the order of their steps */
    uint32_t jump_count;
    eddy_front front;
    eddy_fused **fused;   /* owned */
    uint32_t group_count; /* of those that are made, of so many: */
    uint32_t code_group_count;
    eddy_code_array prepared; /* eddy_prepared_call, owned */
    uint32_t *prepared_of;    /* per instruction: index */
    eddy_place *value_places; /* per value */
    uint32_t *base_values;    /* per base but the first: its value */
    /* Of the operands that are not absent, all instructions' in a row: where their storages are, where their first elements, and the bytes
     * of their storages. */
    eddy_place *places;
    eddy_place *elements;
    int64_t *place_bytes;
    uint32_t *places_at; /* per instruction, and the number of all */
    eddy_patch *patches; /* in the order of the code */
    uint32_t patch_count;
    uint32_t operand_count; /* of the code */
    uint32_t value_count;
    uint32_t base_count;
    uint32_t most_places;      /* of one step */
    uint32_t most_views;       /* of one step */
    size_t most_patched_bytes; /* room for what is patched */
    size_t most_call_bytes;    /* of a packed block that is submitted as a call (cut.h) */
    eddy_arena_plan arena;
    eddy_streams streams;
#ifdef EDDY_CHECKS
    eddy_arena_block *dying; /* in the order of their last steps */
    uint32_t *dying_at;      /* per step, and the number of all: its first */
    uint32_t dying_room;
#endif
    int64_t workspace_bytes; /* of a run: arena, and the frame's arrays behind it */
    int64_t cost_ps;         /* of all instructions, each once */
    int64_t most_ps;         /* the same, each as often as a run may come to it */
    eddy_partitions partitions;
    eddy_fusions fusions;
    eddy_step_rows step_rows; /* where their launches may be captured; else none */
    eddy_device device;       /* without partitions: of all instructions */
};

typedef struct eddy_executable_options {
    bool checks_finite;   /* a run looks at each op's result */
    bool captures_graphs; /* its segments are found */
    eddy_streams_wish streams;
    const eddy_arena_layout *layout; /* where the arena is planned for other sizes too, or NULL */
} eddy_executable_options;

/* Makes the executable of code whose values have places from `bases` (per value: the base, 0 for those of the arena). On failure
 * nothing is left. OUT_OF_MEMORY, or a kernel's failure to prepare, recorded under the origin; INVALID_ARGUMENT, likewise, where the layout has no room. */
EDDY_MUST_USE eddy_status eddy_executable_make(eddy_executable *executable, const eddy_code *code,
                                               const uint32_t *bases, uint32_t base_count,
                                               const eddy_executable_options *options,
                                               eddy_origin origin);
/* Widens the layout, which has as many values and instructions, to what such an executable needs. OUT_OF_MEMORY, or a kernel's failure to
 * prepare, recorded. */
EDDY_MUST_USE eddy_status eddy_executable_measure(const eddy_code *code, const uint32_t *bases,
                                                  uint32_t base_count, eddy_arena_layout *layout,
                                                  eddy_origin origin);
void eddy_executable_fini(eddy_executable *executable);

static inline const eddy_prepared_call *eddy_executable_call(const eddy_executable *executable,
                                                             uint32_t instruction) {
    return (const eddy_prepared_call *)executable->prepared.items +
           executable->prepared_of[instruction];
}

/* Bytes of a NaN, or of -1. */
#define EDDY_ARENA_UNWRITTEN 0xff

/* In builds with checks: what has died with the step is no longer there, and who reads it all the same sees what no one has written. */
static inline void eddy_executable_bury(const eddy_executable *executable, char *arena,
                                        uint32_t step) {
#ifdef EDDY_CHECKS
    for (uint32_t i = executable->dying_at[step]; i < executable->dying_at[step + 1]; i++)
        memset(arena + executable->dying[i].offset, EDDY_ARENA_UNWRITTEN,
               (size_t)executable->dying[i].bytes);
#else
    (void)executable;
    (void)arena;
    (void)step;
#endif
}

/* The bytes of a frame's rooms for one step, and the rooms at *at: two frames that share the rest may run steps at once. */
size_t eddy_frame_room_bytes(const eddy_executable *executable);
void eddy_frame_take_rooms(eddy_frame *frame, const eddy_executable *executable, char **at);

typedef enum eddy_part {
    EDDY_PART_ALL,
    EDDY_PART_FRONT, /* its last operand is the arena, which EDDY_PART_BACK gets likewise */
    EDDY_PART_BACK,
    EDDY_PART_PARTITION, /* one of those of the executable */
    EDDY_PART_GIVES,     /* it runs nothing, and gives up what a run in partitions does */
} eddy_part;

/* The partition of a part of a run; NULL: it is no partition. */
static inline const eddy_partition *eddy_executable_partition(const eddy_executable *executable,
                                                              eddy_part part, uint32_t partition) {
    return part == EDDY_PART_PARTITION ? &executable->partitions.items[partition] : NULL;
}

/* What a run is given beside its storages. */
typedef struct eddy_executable_given {
    eddy_part part;
    uint32_t partition;
    const int64_t *shifts;  /* bytes, per base but the first */
    const int64_t *words;   /* code.h */
    eddy_late_draws *late;  /* whose the words are, or NULL */
    struct eddy_path *path; /* that a front follows; else NULL */
} eddy_executable_given;

/* The bytes of workspace that one part of a run asks for, but in rounds (rounds.h), where they are the arena's; of EDDY_PART_PARTITION that one. */
size_t eddy_executable_workspace(const eddy_executable *executable, eddy_part part,
                                 uint32_t partition);

/* Runs all steps of the part, unless that is a front which leaves its path. run->data are the bases but the first: of a front those that it uses, and then the arena; of a back all, and then the arena.
 * Sets the poison of every operand that the code writes; a front changes none, for it leaves its path where there is any. An instruction's sequence number is
 * run->instruction->sequence - code->recorded_count (of a front: front.recorded_count) + its ordinal. */
void eddy_executable_run(const eddy_executable *executable, const eddy_code *code,
                         const eddy_executable_given *given, const eddy_vm_run *run);

/* The estimated time of an instruction. */
int64_t eddy_executable_cost(const eddy_executable *executable, uint32_t instruction);

/* The arguments of an instruction that is patched, with the attributes that lie in a frame's copy; the block lies behind these. */
const void *eddy_executable_patched(const eddy_executable *executable, uint32_t i, void *copy);

/* One instruction's call as the VM shows it; for descriptions. */
void eddy_executable_instruction(const eddy_executable *executable, const eddy_code *code,
                                 uint32_t i, eddy_vm_instruction *instruction);

/* The bytes of what the executable itself takes. */
int64_t eddy_executable_bytes(const eddy_executable *executable);

#endif
