#include <base/hash.h>
#include <criterion/criterion.h>
#include <string.h>

Test(hash, values_are_xxh3s) {
    /* Of the algorithm's specification. */
    cr_assert_eq(eddy_hash_64("", 0, 0), UINT64_C(0x2d06800538d394c2));
    eddy_digest empty = eddy_hash_128("", 0);
    cr_assert_eq(empty.high, UINT64_C(0x99aa06d3014798d8));
    cr_assert_eq(empty.low, UINT64_C(0x6001c324468d497f));
}

Test(hash, every_byte_and_the_length_count) {
    unsigned char bytes[300];
    for (int i = 0; i < 300; i++)
        bytes[i] = (unsigned char)i;
    for (size_t size = 1; size < sizeof(bytes); size++) {
        eddy_digest digest = eddy_hash_128(bytes, size), shorter = eddy_hash_128(bytes, size - 1);
        cr_assert(digest.low != shorter.low && digest.high != shorter.high);
        bytes[size - 1] ^= 1;
        eddy_digest changed = eddy_hash_128(bytes, size);
        cr_assert(digest.low != changed.low && digest.high != changed.high);
        cr_assert_neq(eddy_hash_64(bytes, size, 0), eddy_hash_64(bytes, size, 1));
        bytes[size - 1] ^= 1;
    }
}

Test(hash, parts_have_the_digest_of_the_whole) {
    unsigned char data[3000];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 31 + i / 7);
    for (size_t part = 1; part < sizeof(data); part = part * 3 + 1) {
        eddy_hash_stream stream;
        eddy_hash_begin(&stream);
        for (size_t at = 0; at < sizeof(data); at += part)
            eddy_hash_add(&stream, data + at, part < sizeof(data) - at ? part : sizeof(data) - at);
        eddy_digest whole = eddy_hash_128(data, sizeof(data)), parts = eddy_hash_end(&stream);
        cr_assert(whole.low == parts.low && whole.high == parts.high, "%zu", part);
    }
}
