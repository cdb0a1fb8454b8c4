#!/usr/bin/env python3
"""Makes a shared library that shows every symbol of libeddy.a, so that each test program need not hold them all.

Usage: show.py LIBEDDY.A LIBRARY.SO COMPILER... -- LIBRARY...   (what links it, and to what)
The objects are compiled for a library that shows little: their symbols are marked hidden, and the linker has no option that
says otherwise. They are merged into one object (ELF, 64 bits, little-endian), whose mark is taken off; within the library
they stay bound to each other, as in the one that is installed."""
import pathlib
import struct
import subprocess
import sys
import tempfile

# Of the ELF specification: offsets of fields, sizes of records, values.
SECTIONS_AT, SECTION_COUNT_AT = 40, 60
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
SYMBOL_TABLE = 2
VISIBILITY = 3


def show(image):
    """Takes the mark off what is named eddy_*; image is a bytearray."""
    assert image[:6] == b"\x7fELF\x02\x01", "no ELF of 64 bits, little-endian"
    sections_at, = struct.unpack_from("<Q", image, SECTIONS_AT)
    count, = struct.unpack_from("<H", image, SECTION_COUNT_AT)
    # More sections than fit into the field are counted in the first of them.
    count = count or SECTION.unpack_from(image, sections_at)[5]
    sections = [SECTION.unpack_from(image, sections_at + i * SECTION.size) for i in range(count)]
    for _, kind, _, _, offset, size, names, *_ in sections:
        if kind != SYMBOL_TABLE:
            continue
        names_at = sections[names][4]
        for at in range(offset, offset + size, SYMBOL.size):
            name, info, other, *_ = SYMBOL.unpack_from(image, at)
            is_local = info >> 4 == 0
            if not is_local and image[names_at + name:names_at + name + 5] == b"eddy_":
                image[at + 5] = other & ~VISIBILITY


def main():
    archive, library, *linking = sys.argv[1:]
    compiler, libraries = linking[:linking.index("--")], linking[linking.index("--") + 1:]
    with tempfile.TemporaryDirectory(dir=pathlib.Path(library).parent) as folder:
        merged = pathlib.Path(folder) / "merged.o"
        subprocess.run(["ld", "-r", "--whole-archive", archive, "-o", merged], check=True)
        image = bytearray(merged.read_bytes())
        show(image)
        merged.write_bytes(image)
        subprocess.run([*compiler, "-shared", "-Wl,-Bsymbolic", f"-Wl,-soname,{pathlib.Path(library).name}",
                        "-o", library, merged, *libraries], check=True)


main()
