#!/usr/bin/env python3
"""Arrays go from numpy to Eddy and back: .npy and .npz files, shared memory by DLPack; .safetensors files too where
Python has the reference implementation.

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

try:
    import safetensors.numpy
except ImportError:
    safetensors = None

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
    library.eddy_npy_load.restype = tensor
    library.eddy_npy_load.argtypes = [ctypes.c_char_p]
    library.eddy_npy_save.argtypes = [tensor, ctypes.c_char_p, ctypes.c_void_p]
    library.eddy_npz_load.restype = ctypes.POINTER(Archive)
    library.eddy_npz_load.argtypes = [ctypes.c_char_p]
    library.eddy_npz_save.argtypes = [List, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p, ctypes.c_void_p]
    library.eddy_safetensors_load.restype = ctypes.POINTER(Archive)
    library.eddy_safetensors_load.argtypes = [ctypes.c_char_p]
    library.eddy_safetensors_save.argtypes = [List, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p, ctypes.c_void_p]
    library.eddy_archive_release.argtypes = [ctypes.POINTER(ctypes.POINTER(Archive))]
    library.eddy_release.argtypes = [ctypes.POINTER(tensor)]
    library.eddy_error_take.argtypes = [ctypes.POINTER(Error)]
    library.eddy_live_count.restype = ctypes.c_int64
    library.eddy_to_dlpack_unversioned.restype = ctypes.c_void_p
    library.eddy_to_dlpack_unversioned.argtypes = [tensor, ctypes.c_void_p]
    library.eddy_from_dlpack_unversioned.restype = tensor
    library.eddy_from_dlpack_unversioned.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    for name in ("eddy_sync", "eddy_sync_deleters"):
        getattr(library, name).argtypes = [ctypes.c_int64]
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
            tensor = ctypes.c_void_p(self.library.eddy_npy_load(self.given.encode()))
            self.check(tensor.value)
            self.check(self.library.eddy_npy_save(tensor, self.copied.encode(), None) == 0)
            self.library.eddy_release(ctypes.byref(tensor))
            self.assert_same(numpy.load(self.copied), array, name)

    def copy(self, load, save, *options):
        archive = load(self.given.encode())
        self.check(bool(archive))
        held = archive.contents
        self.check(save(List(held.tensors, held.count), held.names, self.copied.encode(), *options) == 0)
        self.library.eddy_archive_release(ctypes.byref(archive))

    def copy_npz(self):
        self.copy(self.library.eddy_npz_load, self.library.eddy_npz_save, None)

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


    @unittest.skipUnless(safetensors, "no safetensors for Python (Debian 12 has none; pip install safetensors)")
    def test_safetensors(self):
        wanted = {name: numpy.array(array, dtype=array.dtype.newbyteorder("="), order="C") for name, array in arrays()}
        safetensors.numpy.save_file(wanted, self.given, {"key": "value"})
        self.copy(self.library.eddy_safetensors_load, self.library.eddy_safetensors_save, None)
        copied = safetensors.numpy.load_file(self.copied)
        self.assertEqual(sorted(copied), sorted(wanted))
        for name, array in wanted.items():
            self.assert_same(copied[name], array, name)


# Python's capsules, as __dlpack__ gives them.
CAPSULE, USED_CAPSULE = b"dltensor", b"used_dltensor"
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Export:
    """What numpy.from_dlpack takes."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack__(self, stream=None):
        return python.PyCapsule_New(self.managed, CAPSULE, None)

    def __dlpack_device__(self):
        return 1, 0


class SharedMemory(Case):
    def borrow(self, array):
        """A tensor over the array's memory."""
        capsule = array.__dlpack__()
        tensor = self.library.eddy_from_dlpack_unversioned(python.PyCapsule_GetPointer(capsule, CAPSULE), None)
        self.check(tensor)
        python.PyCapsule_SetName(capsule, USED_CAPSULE)
        return ctypes.c_void_p(tensor)

    def lend(self, tensor):
        """An array over the tensor's memory."""
        managed = self.library.eddy_to_dlpack_unversioned(tensor, None)
        self.check(managed)
        return numpy.from_dlpack(Export(managed))

    def settle(self):
        self.assertEqual(self.library.eddy_sync(2**63 - 1), 0)
        self.assertEqual(self.library.eddy_sync_deleters(2**63 - 1), 0)

    def test_there_and_back(self):
        for dtype in DTYPES[:-1]:  # numpy 1.24 gives no bool
            array = numpy.arange(60).astype(dtype).reshape(5, 12)
            for view in (array, array.T, array[1:4, ::3], array[2, 3], array[:0], numpy.broadcast_to(array[0], (2, 12))):
                if not view.flags.writeable:
                    continue  # numpy 1.24 gives none that cannot be written
                held = sys.getrefcount(view)
                tensor = self.borrow(numpy.asarray(view))
                back = self.lend(tensor)
                self.library.eddy_release(ctypes.byref(tensor))
                self.assert_same(back, numpy.asarray(view), f"{dtype} {view.shape}")
                if view.ndim == 2 and view.size:
                    self.assertEqual(back.strides, view.strides)
                    self.assertEqual(back.ctypes.data, view.ctypes.data, "the same memory")
                del back
                self.settle()
                self.assertEqual(sys.getrefcount(view), held, "the deleter gave the array back")

    def test_negative_strides_are_refused(self):
        capsule = numpy.arange(6.0)[::-1].__dlpack__()
        managed = python.PyCapsule_GetPointer(capsule, CAPSULE)
        self.assertFalse(self.library.eddy_from_dlpack_unversioned(managed, None))
        error = Error()
        self.library.eddy_error_take(ctypes.byref(error))
        self.assertIn(b"stride -1", error.message)


def main():
    Case.library = open_library(os.path.abspath(sys.argv.pop(1)))
    unittest.main()


main()
