#!/usr/bin/env python3
"""Arrays go from numpy to Eddy and back: .npy and .npz files.

Usage: test_numpy.py LIBRARY [unittest's arguments]. Exit status 77: no numpy."""
import ctypes
import os
import sys
import tempfile
import unittest

SYSTEM_PYTHON = "/usr/bin/python3"
EXIT_SKIPPED = 77

try:
    import numpy
except ImportError:
    # Debian's numpy belongs to Debian's Python, which need not be the first one.
    if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
    print("skipped: no numpy (apt install python3-numpy)")
    sys.exit(EXIT_SKIPPED)

DTYPES = ("f4", "f8", "f2", "i1", "u1", "i2", "i4", "i8", "?")


class List(ctypes.Structure):
    _fields_ = [("items", ctypes.c_void_p), ("count", ctypes.c_int64)]


class Archive(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int64), ("names", ctypes.POINTER(ctypes.c_char_p)), ("tensors", ctypes.c_void_p),
                ("metadata_count", ctypes.c_int64), ("metadata", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("op", ctypes.c_char * 48), ("message", ctypes.c_char * 512),
                ("address", ctypes.c_void_p), ("place", ctypes.c_char * 96), ("sequence", ctypes.c_uint64),
                ("more", ctypes.c_uint64)]


def open_library(path):
    library = ctypes.CDLL(path)
    tensor = ctypes.c_void_p
    library.eddy_load_npy.restype = tensor
    library.eddy_load_npy.argtypes = [ctypes.c_char_p]
    library.eddy_save_npy.argtypes = [tensor, ctypes.c_char_p]
    library.eddy_load_npz.restype = ctypes.POINTER(Archive)
    library.eddy_load_npz.argtypes = [ctypes.c_char_p]
    library.eddy_save_npz.argtypes = [List, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p]
    library.eddy_archive_release.argtypes = [ctypes.POINTER(ctypes.POINTER(Archive))]
    library.eddy_release.argtypes = [ctypes.POINTER(tensor)]
    library.eddy_error_take.argtypes = [ctypes.POINTER(Error)]
    library.eddy_live_count.restype = ctypes.c_int64
    return library


def arrays():
    """Every dtype, shapes of rank 0 to 4, no elements, Fortran order, the other byte order."""
    source = numpy.random.default_rng(1)
    for dtype in DTYPES:
        for shape in ((), (1,), (7,), (3, 5), (2, 3, 4, 5), (0, 4)):
            yield f"{dtype} {shape}", (100 * source.standard_normal(shape)).astype(dtype)
    yield "fortran", numpy.asfortranarray(numpy.arange(24.0).reshape(2, 3, 4))
    yield "swapped", numpy.arange(6, dtype=">i4")
    yield "strided", numpy.arange(30, dtype="i8").reshape(5, 6)[::2, ::-1]
    yield "\u00e4/name", numpy.array([numpy.nan, numpy.inf, -0.0], dtype="f4")


class Case(unittest.TestCase):
    library = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.given, self.copied = (os.path.join(holder.name, name) for name in ("given", "copied"))

    def tearDown(self):
        self.assertEqual(self.library.eddy_live_count(), 0)

    def check(self, is_fine):
        error = Error()
        status = self.library.eddy_error_take(ctypes.byref(error))
        self.assertTrue(is_fine and status == 0, error.message)

    def assert_same(self, got, want, name):
        self.assertEqual(got.dtype, want.dtype.newbyteorder("="), name)
        self.assertEqual(got.shape, want.shape, name)
        self.assertEqual(got.tobytes(), want.astype(want.dtype.newbyteorder("=")).tobytes(), name)


class Files(Case):
    def test_npy(self):
        for name, array in arrays():
            with open(self.given, "wb") as file:
                numpy.save(file, array)
            tensor = ctypes.c_void_p(self.library.eddy_load_npy(self.given.encode()))
            self.check(tensor.value)
            self.check(self.library.eddy_save_npy(tensor, self.copied.encode()) == 0)
            self.library.eddy_release(ctypes.byref(tensor))
            self.assert_same(numpy.load(self.copied), array, name)

    def copy_npz(self):
        archive = self.library.eddy_load_npz(self.given.encode())
        self.check(bool(archive))
        held = archive.contents
        tensors = List(held.tensors, held.count)
        self.check(self.library.eddy_save_npz(tensors, held.names, self.copied.encode()) == 0)
        self.library.eddy_archive_release(ctypes.byref(archive))

    def test_npz(self):
        wanted = dict(arrays())
        for save in (numpy.savez, numpy.savez_compressed):
            with open(self.given, "wb") as file:
                save(file, **wanted)
            self.copy_npz()
            with numpy.load(self.copied) as copied:
                self.assertEqual(list(copied), list(wanted))
                for name, array in wanted.items():
                    self.assert_same(copied[name], array, name)

    def test_npz_without_arrays(self):
        with open(self.given, "wb") as file:
            numpy.savez(file)
        self.copy_npz()
        with numpy.load(self.copied) as copied:
            self.assertEqual(list(copied), [])


def main():
    Case.library = open_library(os.path.abspath(sys.argv.pop(1)))
    unittest.main()


main()
