/* The threads of a grid, one after another. If those of a block meet, each is a fiber: it runs until it has to wait, and goes on when all
 * others that live have come as far. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tests/fake_cuda/kernels/fiber.h>
#include <tests/fake_cuda/kernels/grid.h>
#include <vector>

__thread eddy_grid_index threadIdx, blockIdx, blockDim, gridDim;

static const eddy_grid_meets *meeting_kernels; /* const after the library has been loaded */

eddy_grid_meets::eddy_grid_meets(eddy_grid_kernel *of) : kernel(of), next(meeting_kernels) {
    meeting_kernels = this;
}

static bool meets(eddy_grid_kernel *kernel) {
    for (const eddy_grid_meets *m = meeting_kernels; m; m = m->next)
        if (m->kernel == kernel)
            return true;
    return false;
}

/* ---- meetings ---- */

namespace {

constexpr size_t STACK_BYTES = 256 << 10; /* of addresses; what is not touched takes no memory */
/* So much further down each stack begins than the one before, 64 of them: else all would share a few lines of the caches. */
constexpr size_t STACK_SHIFT = 192;
constexpr unsigned WARP = 32;

/* Of a warp or of a block. */
struct meeting {
    unsigned live, arrived, generation;
};

/* What is given lies in two places by turns: one is not written before all have read it. */
struct warp {
    meeting all;
    uint64_t given[2][WARP];
};

struct thread {
    eddy_fiber fiber;
    eddy_grid_index index;
    unsigned number;
    const meeting *waits_for; /* NULL: it can run; until the generation is another one */
    unsigned generation;
    bool is_done;
};

struct block {
    eddy_grid_kernel *kernel;
    const void *parameters;
    eddy_fiber scheduler;
    meeting all;
    /* The next block's first one, this one's, and the launch's. */
    uint64_t next_epoch, block_epoch, launch_epoch;
    std::vector<thread> threads;
    std::vector<warp> warps;
    thread *running;
    std::vector<uint64_t> shared;
    char *stacks;
    size_t stacks_bytes;

    block()
        : next_epoch(0), block_epoch(0), launch_epoch(0), running(nullptr), stacks(nullptr),
          stacks_bytes(0) {
    }
    ~block() {
        if (stacks)
            munmap(stacks, stacks_bytes);
    }
};

/* What this thread runs. A pointer: what has a constructor is asked at each use whether it has run. */
__thread block *self __attribute__((tls_model("initial-exec")));

[[noreturn]] void die(const char *why) {
    fprintf(stderr, "grid: block %u, %u, %u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, why);
    abort();
}

void end_if_all_are_there(meeting *m) {
    if (m->arrived == m->live) {
        m->arrived = 0;
        m->generation++;
    }
}

void meet(meeting *m) {
    thread *me = self->running;
    const unsigned before = m->generation;
    m->arrived++;
    end_if_all_are_there(m);
    if (m->generation != before)
        return;
    me->waits_for = m;
    me->generation = before;
    eddy_fiber_switch(&me->fiber, &self->scheduler, false);
}

warp *own_warp() {
    if (!self->running)
        die("a thread meets others in a kernel that is no EDDY_CUDA_BLOCK_KERNEL");
    return &self->warps[self->running->number / WARP];
}

/* ---- running ---- */

void run_thread() {
    eddy_fiber_begin(&self->scheduler);
    self->kernel(self->parameters);
    thread *me = self->running;
    warp *mine = own_warp();
    me->is_done = true;
    self->all.live--;
    mine->all.live--;
    end_if_all_are_there(&self->all);
    end_if_all_are_there(&mine->all);
    eddy_fiber_switch(&me->fiber, &self->scheduler, true);
}

void begin_threads() {
    const unsigned count = blockDim.x * blockDim.y * blockDim.z;
    if (count * STACK_BYTES > self->stacks_bytes) {
        if (self->stacks)
            munmap(self->stacks, self->stacks_bytes);
        self->stacks_bytes = count * STACK_BYTES;
        void *memory = mmap(nullptr, self->stacks_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            die("no memory for stacks");
        self->stacks = (char *)memory;
    }
    self->threads.resize(count);
    self->warps.assign((count + WARP - 1) / WARP, {});
    self->all = {count, 0, 0};
    for (unsigned i = 0; i < count; i++) {
        thread *t = &self->threads[i];
        t->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        t->number = i;
        t->waits_for = nullptr;
        t->is_done = false;
        self->warps[i / WARP].all.live++;
        eddy_fiber_init(&t->fiber, self->stacks + i * STACK_BYTES,
                        STACK_BYTES - i % 64 * STACK_SHIFT, run_thread);
    }
}

/* Until it ends or has to wait; false if it still has to. */
bool resume(thread *t) {
    if (t->is_done || (t->waits_for && t->waits_for->generation == t->generation))
        return false;
    t->waits_for = nullptr;
    self->running = t;
    threadIdx = t->index;
    eddy_fiber_switch(&self->scheduler, &t->fiber, false);
    self->running = nullptr;
    return true;
}

void run_meeting_block() {
    begin_threads();
    while (self->all.live > 0) {
        bool has_run = false;
        for (thread &t : self->threads)
            has_run |= resume(&t);
        if (!has_run)
            die("its threads wait for each other at different places");
    }
}

void run_plain_block(eddy_grid_kernel *kernel, const void *parameters) {
    for (unsigned z = 0; z < blockDim.z; z++)
        for (unsigned y = 0; y < blockDim.y; y++)
            for (unsigned x = 0; x < blockDim.x; x++) {
                threadIdx = {x, y, z};
                kernel(parameters);
            }
}

} // namespace

void __syncthreads() {
    own_warp();
    meet(&self->all);
}

eddy_grid_moment eddy_grid_now() {
    const thread *me = self->running;
    if (!me) {
        const unsigned number = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        return {self->block_epoch, self->block_epoch, self->launch_epoch, number, 0};
    }
    return {self->block_epoch + self->all.generation, self->block_epoch, self->launch_epoch,
            me->number, self->warps[me->number / WARP].all.generation};
}

void __syncwarp() {
    meet(&own_warp()->all);
}

uint64_t eddy_grid_exchange(uint64_t mine, unsigned lane) {
    warp *w = own_warp();
    const unsigned own = self->running->number % WARP, first = self->running->number - own;
    uint64_t *given = w->given[w->all.generation & 1];
    given[own] = mine;
    meet(&w->all);
    return lane < WARP && first + lane < self->threads.size() ? given[lane] : mine;
}

unsigned eddy_grid_lane() {
    own_warp();
    return self->running->number % WARP;
}

void *eddy_grid_shared() {
    return self->shared.data();
}

size_t eddy_grid_shared_bytes() {
    return self->shared.size() * sizeof(uint64_t);
}

void eddy_grid_run(eddy_grid_kernel *kernel, const void *parameters, const unsigned grid[3],
                   const unsigned block[3], unsigned shared_bytes) {
    const bool is_meeting = meets(kernel);
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    static thread_local struct block own;
    self = &own;
    self->kernel = kernel;
    self->parameters = parameters;
    self->all = {};
    self->launch_epoch = self->next_epoch;
    self->shared.assign((shared_bytes + 15) / 16 * 2, UINT64_C(0xa5a5a5a5a5a5a5a5));
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                self->block_epoch = self->next_epoch;
                if (is_meeting)
                    run_meeting_block();
                else
                    run_plain_block(kernel, parameters);
                self->next_epoch += self->all.generation + 1;
            }
}
