"""Lists the raw roots (A-05).

Against it: modes, mounts, Landlock; seccomp for watches, which Landlock does not restrict.
"""

import ctypes
import glob
import os
import pathlib
import subprocess

from pyarrow import dataset, fs
from toolbox import TARGETS, attempt, checked, libc, number, syscall

ROOT = TARGETS["raw_root"]
PATH = os.fsencode(ROOT)
AT_FDCWD = -100
O_PATH = 0x200000
OPENAT = number(257, 56)
OPEN = number(2)
GETDENTS64 = number(217, 61)
GETDENTS = number(78)
INOTIFY_INIT1 = number(294, 26)
INOTIFY_ADD_WATCH = number(254, 27)
IN_CREATE = 0x100


class Entry(ctypes.Structure):
    _fields_ = (
        ("inode", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("length", ctypes.c_ushort),
        ("kind", ctypes.c_ubyte),
        ("name", ctypes.c_char * 256),
    )


def told(names):
    return " ".join(sorted(str(name) for name in names if str(name) not in (".", ".."))) or None


def by_opendir():
    libc.opendir.restype, libc.readdir.restype = ctypes.c_void_p, ctypes.POINTER(Entry)
    place, names = ctypes.c_void_p(checked(libc.opendir(PATH))), []
    while entry := libc.readdir(place):
        names.append(entry.contents.name.decode())
    libc.closedir(place)
    return told(names)


def by_scandir():
    libc.scandir.restype = ctypes.c_int
    found = ctypes.POINTER(ctypes.POINTER(Entry))()
    count = checked(libc.scandir(PATH, ctypes.byref(found), None, None))
    return told(found[i].contents.name.decode() for i in range(count))


def by_c_glob():
    class Found(ctypes.Structure):
        _fields_ = (("count", ctypes.c_size_t), ("paths", ctypes.POINTER(ctypes.c_char_p)), ("rest", ctypes.c_char * 256))

    found = Found()
    libc.glob(PATH + b"/*", 0, None, ctypes.byref(found))
    return told(found.paths[i].decode() for i in range(found.count))


def entries(fd):
    """The names of a folder, by the call's number."""
    kept, names = ctypes.create_string_buffer(1 << 15), []
    while count := syscall(GETDENTS64, fd, kept, len(kept)):
        at, data = 0, kept.raw[:count]
        while at < count:
            length = int.from_bytes(data[at + 16 : at + 18], "little")
            names.append(data[at + 19 : at + length].split(b"\0")[0].decode())
            at += length
    return told(names)


def by_raw_getdents():
    return entries(syscall(OPENAT, AT_FDCWD, PATH, os.O_RDONLY | os.O_DIRECTORY, 0))


def by_old_getdents():
    fd, kept = syscall(OPEN, PATH, os.O_RDONLY | os.O_DIRECTORY, 0), ctypes.create_string_buffer(1 << 15)
    count = syscall(GETDENTS, fd, kept, len(kept))
    return told(word for word in kept.raw[:count].decode("latin-1").split("\0") if len(word) > 3 and word.isprintable())


def by_path_descriptor():
    """A descriptor that may not be read, then `.` of it, which may."""
    fd = os.open(ROOT, os.O_PATH | os.O_DIRECTORY)
    return told(os.listdir(os.open(".", os.O_RDONLY, dir_fd=fd)))


def by_raw_path_descriptor():
    fd = syscall(OPENAT, AT_FDCWD, PATH, O_PATH | os.O_DIRECTORY, 0)
    return entries(syscall(OPENAT, fd, b".", os.O_RDONLY | os.O_DIRECTORY, 0))


def by_proc_descriptor():
    fd = syscall(OPENAT, AT_FDCWD, PATH, O_PATH | os.O_DIRECTORY, 0)
    return entries(syscall(OPENAT, AT_FDCWD, b"/proc/self/fd/%d/" % fd, os.O_RDONLY | os.O_DIRECTORY, 0))


def by_working_folder():
    before = os.getcwd()
    checked(libc.chdir(PATH))
    try:
        return entries(syscall(OPENAT, AT_FDCWD, b".", os.O_RDONLY | os.O_DIRECTORY, 0))
    finally:
        os.chdir(before)


def by_parent():
    """The parent folders up to the root, and what lies in them."""
    fd = syscall(OPENAT, AT_FDCWD, os.path.dirname(PATH), os.O_RDONLY | os.O_DIRECTORY, 0)
    return entries(fd)


def by_watch():
    """A watch on the folder tells each name as it is made or opened: it must be refused like a listing."""
    watcher = syscall(INOTIFY_INIT1, 0)
    return f"watch {syscall(INOTIFY_ADD_WATCH, watcher, PATH, IN_CREATE)}"


def by_ls():
    done = subprocess.run(["/bin/ls", ROOT], capture_output=True, text=True, timeout=0.9, check=True)
    return done.stdout or None


DOORS = {
    "listdir": lambda: told(os.listdir(ROOT)),
    "listdir_bytes": lambda: told(os.listdir(PATH)),
    "scandir": lambda: told(entry.name for entry in os.scandir(ROOT)),
    "walk": lambda: told(name for _, folders, names in os.walk(ROOT) for name in (*folders, *names)),
    "fwalk": lambda: told(name for _, folders, names, _ in os.fwalk(ROOT) for name in (*folders, *names)),
    "glob": lambda: told(glob.glob(f"{ROOT}/**", recursive=True)[1:]),
    "pathlib": lambda: told(pathlib.Path(ROOT).iterdir()),
    "descriptor": lambda: told(os.listdir(os.open(ROOT, os.O_RDONLY | os.O_DIRECTORY))),
    "path_descriptor": by_path_descriptor,
    "file_selector": lambda: told(info.path for info in fs.LocalFileSystem().get_file_info(fs.FileSelector(ROOT))),
    "dataset": lambda: told(dataset.dataset(ROOT, format="csv").files),
    "opendir": by_opendir,
    "c_scandir": by_scandir,
    "c_glob": by_c_glob,
    "raw_getdents": by_raw_getdents,
    "old_getdents": by_old_getdents,
    "raw_path_descriptor": by_raw_path_descriptor,
    "proc_descriptor": by_proc_descriptor,
    "working_folder": by_working_folder,
    "parent": by_parent,
    "watch": by_watch,
    "other_run": lambda: told(os.listdir(TARGETS["other_run"])),
    "home": lambda: told(name for _, folders, names in os.walk(TARGETS["home"]) for name in (*folders, *names)),
    "ls": by_ls,
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in DOORS.items():
                attempt(name, act)
        return 0.5
