"""Small data sets in the form of Fashion-MNIST's files, for tests that need no real images."""

import gzip
import os
import random
import struct

NAMES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
         "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
CLASSES = 10
SIDE = 28


def images_bytes(pixels, count):
    return struct.pack(">4I", 0x803, count, SIDE, SIDE) + pixels


def labels_bytes(labels):
    return struct.pack(">2I", 0x801, len(labels)) + bytes(labels)


def write_gzip(path, data):
    # A fixed time stamp: the same data gives the same file.
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed:
        packed.write(data)


def make(folder, train_count=2000, test_count=400, seed=1):
    """Writes the four files: noise with a bright band whose place is the class, so that a network can learn it."""
    source = random.Random(seed)
    for kind, count in (("train", train_count), ("t10k", test_count)):
        labels = [source.randrange(CLASSES) for _ in range(count)]
        pixels = bytearray(source.randbytes(count * SIDE * SIDE))
        for i, label in enumerate(labels):
            band = i * SIDE * SIDE + (2 + 2 * label) * SIDE
            pixels[band:band + 2 * SIDE] = b"\xff" * (2 * SIDE)
        write_gzip(os.path.join(folder, f"{kind}-images-idx3-ubyte.gz"), images_bytes(bytes(pixels), count))
        write_gzip(os.path.join(folder, f"{kind}-labels-idx1-ubyte.gz"), labels_bytes(labels))
