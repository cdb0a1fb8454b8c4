/* Streams: queues of pieces, which the thread of their device runs in order, one at a time. */
#ifndef EDDY_TESTS_FAKE_CUDA_STREAM_H
#define EDDY_TESTS_FAKE_CUDA_STREAM_H

#include <tests/fake_cuda/clock.h>
#include <tests/fake_cuda/device.h>
#include <tests/fake_cuda/module.h>

/* Of one piece: as many as a list of tensors has (kernels/cuda/list.h), and its gate. */
#define FAKE_TOUCHES 384

typedef enum fake_piece_kind {
    FAKE_WAIT,   /* lets the stream wait for a piece of another */
    FAKE_AWAIT,  /* lets the stream wait for a value that the host writes */
    FAKE_RECORD, /* of an event: nothing to do */
    FAKE_COPY,
    FAKE_FILL,
    FAKE_WRITE,
    FAKE_KERNEL,
} fake_piece_kind;

/* Something launched. */
typedef struct fake_piece {
    struct fake_piece *next;
    fake_piece_kind kind;
    const char *what; /* const; stays for good */
    uint64_t number;  /* in its stream */
    uint32_t other;   /* WAIT: for piece `awaited` of this stream */
    uint64_t awaited;
    uintptr_t to, from; /* of the device, or the host's */
    size_t bytes;
    uint64_t value; /* of a fill or a write, or to wait for at `to` */
    const fake_function *function;
    eddy_cu_function handle; /* of a kernel: the function's */
    unsigned grid[3], block[3], shared_bytes;
    fake_clock *clock; /* WRITE that the host sees: the piece's; else NULL */
    int touch_count;
    fake_touch touches[FAKE_TOUCHES];
    _Alignas(16) unsigned char parameters[];
} fake_piece;

/* Of a stream that captures (capture.h). */
typedef struct fake_capture {
    struct fake_graph *graph; /* NULL: it does not */
    eddy_cu_capture_mode mode;
    const void *thread; /* that has begun it */
    bool is_invalid;
} fake_capture;

/* Lock: the fake's. */
typedef struct fake_stream {
    fake_device *device; /* NULL: the place is free */
    uint64_t generation;
    bool is_destroyed; /* the handle is; the place is free once all is over */
    int priority;      /* within the driver's range: less is more urgent */
    fake_piece *head, **tail;
    fake_piece *running;
    /* Numbers of pieces: the last launched, the last that is over, and up to which they may run. They go on in a place's next stream. */
    uint64_t launched, done, released;
    uint64_t turn;    /* the place of its last piece among all that its device has run */
    uint64_t worked;  /* the last launched one that touches memory */
    fake_clock clock; /* what comes before the next piece */
    /* The last launched WRITE: what a kernel behind it finds there. */
    uintptr_t written_to;
    uint64_t written;
    fake_capture capture; /* what is launched goes there; without a graph it runs */
} fake_stream;

/* The range of priorities: of devices of capability 9.0. */
#define FAKE_PRIORITY_LEAST 0
#define FAKE_PRIORITY_GREATEST (-5)

extern fake_stream fake_streams[FAKE_STREAMS];
/* What the host has seen complete: comes before all that is launched from now on. Lock. */
extern fake_clock fake_host_clock;

/* The stream of this handle on the device, or NULL. Lock. */
fake_stream *fake_stream_of(eddy_cu_stream handle, const fake_device *device);
uint32_t fake_stream_number(const fake_stream *stream);

/* NULL: no memory. `parameter_bytes` follow the piece. */
fake_piece *fake_piece_create(fake_piece_kind kind, const char *what, size_t parameter_bytes);
void fake_piece_free(fake_piece *piece);
/* Takes the piece, numbers it, looks for races of its touches, and appends it. Lock. */
void fake_stream_launch(fake_stream *stream, fake_piece *piece);

/* Lets run what comes before something that the host waits for. Lock. */
void fake_stream_release(const fake_clock *clock);
/* Whether a piece is over, or never will be as its device is lost. Lock. */
bool fake_stream_is_done(uint32_t stream, uint64_t number);
/* Drops what the streams of a device have not begun; with `ends`, the streams too. Lock. */
void fake_stream_drop(const fake_device *device, bool ends);
/* Streams that are not destroyed, of contexts that are there. Lock. */
int fake_stream_count(void);
/* Frees the places of destroyed streams whose pieces are all over and known to be. Lock. */
void fake_stream_collect(void);

/* For tests, by dlsym: the `turn` of a stream of the thread's context; -1: it is none. */
__attribute__((visibility("default"))) long fake_cuda_turn(eddy_cu_stream stream);

#endif
