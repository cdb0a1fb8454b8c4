#include <program/file_head.h>

#include <string.h>

/* Positions; what lies between is 0. The last is the digest of all bytes before it. */
enum {
    MAGIC = 0,
    VERSION = 8,
    HEAD = 12,
    FILE_BYTES = 16,
    TEXT_BYTES = 24,
    DATA_AT = 32,
    TENSORS = 40,
    TEXT_DIGEST = 64,
    DATA_DIGEST = 80,
    HEAD_DIGEST = 112,
};

static const char magic[8] = "EDDYPROG";

static void put(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static void put_digest(unsigned char *to, eddy_digest digest) {
    put(to, digest.low, 8);
    put(to + 8, digest.high, 8);
}

static eddy_digest get_digest(const unsigned char *from) {
    return (eddy_digest){.low = get(from, 8), .high = get(from + 8, 8)};
}

void eddy_file_head_write(const eddy_file_head *head, unsigned char bytes[EDDY_FILE_HEAD_BYTES]) {
    memset(bytes, 0, EDDY_FILE_HEAD_BYTES);
    memcpy(bytes + MAGIC, magic, sizeof(magic));
    put(bytes + VERSION, EDDY_FILE_HEAD_VERSION, 4);
    put(bytes + HEAD, EDDY_FILE_HEAD_BYTES, 4);
    put(bytes + FILE_BYTES, head->file_bytes, 8);
    put(bytes + TEXT_BYTES, head->text_bytes, 8);
    put(bytes + DATA_AT, head->data_at, 8);
    put(bytes + TENSORS, head->tensor_count, 8);
    put_digest(bytes + TEXT_DIGEST, head->text_digest);
    put_digest(bytes + DATA_DIGEST, head->data_digest);
    put_digest(bytes + HEAD_DIGEST, eddy_hash_128(bytes, HEAD_DIGEST));
}

const char *eddy_file_head_read(eddy_file_head *head,
                                const unsigned char bytes[EDDY_FILE_HEAD_BYTES]) {
    eddy_digest is = eddy_hash_128(bytes, HEAD_DIGEST), said = get_digest(bytes + HEAD_DIGEST);
    if (memcmp(bytes + MAGIC, magic, sizeof(magic)) != 0)
        return "no file of a program";
    if (get(bytes + VERSION, 4) != EDDY_FILE_HEAD_VERSION)
        return "a version of the format that this library does not know";
    if (get(bytes + HEAD, 4) != EDDY_FILE_HEAD_BYTES || is.low != said.low || is.high != said.high)
        return "the head is damaged";
    *head = (eddy_file_head){.file_bytes = get(bytes + FILE_BYTES, 8),
                             .text_bytes = get(bytes + TEXT_BYTES, 8),
                             .data_at = get(bytes + DATA_AT, 8),
                             .tensor_count = get(bytes + TENSORS, 8),
                             .text_digest = get_digest(bytes + TEXT_DIGEST),
                             .data_digest = get_digest(bytes + DATA_DIGEST)};
    if (head->file_bytes > INT64_MAX || head->text_bytes > head->file_bytes ||
        head->data_at > head->file_bytes ||
        head->data_at != eddy_file_head_aligned(EDDY_FILE_HEAD_BYTES + head->text_bytes))
        return "the head states sizes that do not fit";
    return NULL;
}
