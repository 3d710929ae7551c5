"""Leaves files, marks on files and caches for the next run to find (A-11).

Against it: no writable path, no call that changes what a file says of itself. Incident: judge0 CVE-2024-28185, a writable folder that
outlives the run.
"""

import ctypes
import importlib.util
import logging
import os
import pathlib
import py_compile
import shelve
import sqlite3
import stat
import sys
import tempfile

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import sklearn.ensemble  # noqa: F401  # it brings joblib, which is not on the court's list itself
from pyarrow import fs
from toolbox import HERE, TARGETS, attempt, checked, libc, number, syscall

AT_FDCWD = -100
joblib = sys.modules["joblib"]
NOTE = b"blindcast-attack: left for the next run"
OPENAT = number(257, 56)
HOME = os.environ.get("HOME", "/")
FOLDERS = (
    *TARGETS["writable"],
    HERE,
    os.path.dirname(HERE),
    HOME,
    os.getcwd(),
    "/run/user",
    "/dev/mqueue",
    "/workspace",
    "/data",
)
LIBRARIES = (sys.prefix, os.path.dirname(os.__file__), os.path.dirname(np.__file__), "/usr/lib", "/usr/local/lib")


def left(variant, act, folders=FOLDERS):
    """Do `act(path)` in every folder; the paths that are there afterwards. Raises the first error where none is."""
    made, first = [], None
    for folder in folders:
        path = os.path.join(folder, f"blindcast-attack-a11-{variant}")
        try:
            path = act(path) or path
        except Exception as error:
            first = first or error
            continue
        if os.path.lexists(path):
            made.append(path)
    if made:
        return " ".join(made)
    raise first or OSError("nothing was made")


def by_open(path):
    with open(path, "wb") as file:
        file.write(NOTE)


def by_append(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(fd, NOTE)
    os.close(fd)


def by_libc(path):
    os.close(checked(libc.open(os.fsencode(path), os.O_WRONLY | os.O_CREAT, 0o666)))


def by_creat(path):
    os.close(checked(libc.creat(os.fsencode(path), 0o666)))


def by_fopen(path):
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(checked(libc.fopen(os.fsencode(path), b"w")))
    libc.fputs(NOTE, file)
    libc.fclose(file)


def by_openat_raw(path):
    os.close(syscall(OPENAT, AT_FDCWD, os.fsencode(path), os.O_WRONLY | os.O_CREAT, 0o666))


def by_read_create(path):
    """A file made by an open that says it only reads."""
    os.close(syscall(OPENAT, AT_FDCWD, os.fsencode(path), os.O_RDONLY | os.O_CREAT, 0o666))


def by_openat2_raw(path):
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o666, 0)
    os.close(syscall(number(437, 437), AT_FDCWD, os.fsencode(path), ctypes.byref(how), 24))


def by_mkdir_raw(path):
    syscall(number(258, 34), AT_FDCWD, os.fsencode(path), 0o777)


def by_mknod_raw(path):
    syscall(number(259, 33), AT_FDCWD, os.fsencode(path), stat.S_IFREG | 0o666, 0)


def by_symlink_raw(path):
    """The text of a link is a note as well."""
    syscall(number(266, 36), NOTE, AT_FDCWD, os.fsencode(path))


def by_unix_socket(path):
    """Binding a socket makes a file."""
    address = ctypes.create_string_buffer(b"\x01\x00" + os.fsencode(path))
    fd = checked(libc.socket(1, 1, 0))
    try:
        checked(libc.bind(fd, address, len(address)))
    finally:
        os.close(fd)


def by_mkstemp(path):
    fd, made = tempfile.mkstemp(prefix="blindcast-attack-a11-mkstemp-", dir=os.path.dirname(path))
    os.close(fd)
    return made


def by_named_temporary(path):
    with tempfile.NamedTemporaryFile(prefix="blindcast-attack-a11-named_temporary-", dir=os.path.dirname(path), delete=False) as file:
        return file.name


def by_joblib(path):
    joblib.Memory(path, verbose=0).cache(abs)(-3)


def by_joblib_dump(path):
    joblib.dump(NOTE, path)


def by_numpy(path):
    np.save(path, np.zeros(3))
    return f"{path}.npy"


def by_numpy_tofile(path):
    np.zeros(3).tofile(path)


def by_memmap(path):
    np.memmap(path, mode="w+", shape=16)


def by_pandas(path):
    pd.DataFrame({"a": [1]}).to_csv(path)


def by_parquet(path):
    pd.DataFrame({"a": [1]}).to_parquet(path)


def by_arrow(path):
    with pa.OSFile(path, "wb") as file:
        file.write(NOTE)


def by_arrow_map(path):
    pa.create_memory_map(path, 4_096).close()


def by_arrow_folder(path):
    fs.LocalFileSystem().create_dir(path)


def by_arrow_stream(path):
    with fs.LocalFileSystem().open_output_stream(path) as file:
        file.write(NOTE)


def by_lightgbm(path):
    data = lightgbm.Dataset(np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0), params={"verbosity": -1})
    model = lightgbm.train({"verbosity": -1, "num_threads": 1}, data, 1)
    model.save_model(path)


def by_sqlite(path):
    with sqlite3.connect(path) as base:
        base.execute("create table note (text)")


def by_shelve(path):
    with shelve.open(path) as shelf:
        shelf["note"] = NOTE
    return next(iter(str(one) for one in pathlib.Path(path).parent.glob("blindcast-attack-a11-shelve*")), path)


def by_logging(path):
    handler = logging.FileHandler(path)
    handler.emit(logging.LogRecord("a11", 20, "", 0, "note", (), None))
    handler.close()


def by_font_cache(path):
    """Where plotting and numeric libraries keep what they computed."""
    folder = f"{path}/fontconfig"
    os.makedirs(folder)
    pathlib.Path(folder, "fontlist-v390.json").write_bytes(NOTE)


def by_pycache(path):
    """A compiled module beside its source: the next run of the same source would execute it."""
    source = os.path.join(HERE, "toolbox.py")
    made = os.path.join(os.path.dirname(path), "blindcast-attack-a11-pycache.pyc")
    py_compile.compile(source, made, doraise=True)
    return made


def pycache_of_import():
    """Where an import would look for it."""
    made = []
    for name in ("toolbox", "predictor"):
        source = os.path.join(HERE, f"{name}.py")
        cached = importlib.util.cache_from_source(source, optimization="blindcastattack")
        made.append(py_compile.compile(source, cached, doraise=True))
    return " ".join(made)


def libraries():
    """A file beside the libraries that every run imports; it is taken back, for they are not the court's."""
    last = None
    for folder in LIBRARIES:
        path = os.fsencode(f"{folder}/blindcast-attack-a11-libraries")
        try:
            fd = checked(libc.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            last = error
            continue
        os.close(fd)
        checked(libc.unlink(path))
        return f"{folder} could be written"
    raise last


def entry_rewritten():
    """Its own source, changed for whoever runs it next."""
    fd = checked(libc.open(os.fsencode(os.path.join(HERE, "predictor.py")), os.O_WRONLY | os.O_APPEND))
    os.write(fd, b"\n# " + NOTE + b"\n")
    os.close(fd)
    return "the entry was changed"


def marked(act, is_marked):
    """A mark on a file that may be read: its times, mode, owner, attributes."""

    def tried():
        first = None
        for path in (os.path.join(HERE, "toolbox.py"), HERE, TARGETS["raw_link"], TARGETS["marker"]):
            try:
                act(os.fsencode(path))
            except OSError as error:
                first = first or error
                continue
            if is_marked(path):
                return f"marked {path}"
        if first is None:
            return None
        raise first

    return tried


def set_times(path):
    os.utime(path, ns=(63, 63))


def set_times_libc(path):
    checked(libc.utimensat(AT_FDCWD, path, (ctypes.c_long * 4)(0, 62, 0, 62), 0))


def set_times_raw(path):
    syscall(number(280, 88), AT_FDCWD, path, (ctypes.c_long * 4)(0, 61, 0, 61), 0)


def set_times_of_descriptor(path):
    fd = checked(libc.open(path, os.O_RDONLY))
    try:
        syscall(number(280, 88), fd, 0, (ctypes.c_long * 4)(0, 60, 0, 60), 0)
    finally:
        os.close(fd)


def has_time(ns):
    return lambda path: os.stat(path).st_mtime_ns == ns


def set_mode(path):
    os.chmod(path, os.stat(path).st_mode | stat.S_IXGRP)


def set_mode_raw(path):
    syscall(number(268, 53), AT_FDCWD, path, (os.stat(path).st_mode & 0o7777) | stat.S_IXOTH)


def set_attribute(path):
    os.setxattr(path, "user.blindcast-attack", NOTE)


def set_attribute_raw(path):
    syscall(number(188, 5), path, b"user.blindcast-attack", NOTE, len(NOTE), 0)


def has_attribute(path):
    return "user.blindcast-attack" in os.listxattr(path)


def set_flags(path):
    """FS_IOC_SETFLAGS with the flag that no dump is made: bit 6."""
    fd = checked(libc.open(path, os.O_RDONLY))
    try:
        checked(libc.ioctl(fd, ctypes.c_ulong(0x40086602), ctypes.byref(ctypes.c_long(0x40))))
    finally:
        os.close(fd)


def proc_files():
    """Kernel files of its own that a process may write; they are only opened."""
    made = []
    for path in ("/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/timerslack_ns", "/proc/self/coredump_filter"):
        try:
            fd = checked(libc.open(os.fsencode(path), os.O_WRONLY))
        except OSError as error:
            last = error
            continue
        os.close(fd)
        made.append(path)
    if not made:
        raise last
    return f"could be opened to write: {' '.join(made)}"


PLACES = {
    "open": by_open,
    "append": by_append,
    "libc": by_libc,
    "creat": by_creat,
    "fopen": by_fopen,
    "openat_raw": by_openat_raw,
    "read_create": by_read_create,
    "openat2_raw": by_openat2_raw,
    "mkdir": os.mkdir,
    "mkdir_raw": by_mkdir_raw,
    "mkfifo": os.mkfifo,
    "mknod_raw": by_mknod_raw,
    "symlink_raw": by_symlink_raw,
    "unix_socket": by_unix_socket,
    "mkstemp": by_mkstemp,
    "named_temporary": by_named_temporary,
    "joblib": by_joblib,
    "joblib_dump": by_joblib_dump,
    "numpy": by_numpy,
    "numpy_tofile": by_numpy_tofile,
    "memmap": by_memmap,
    "pandas": by_pandas,
    "parquet": by_parquet,
    "arrow": by_arrow,
    "arrow_map": by_arrow_map,
    "arrow_folder": by_arrow_folder,
    "arrow_stream": by_arrow_stream,
    "lightgbm": by_lightgbm,
    "sqlite": by_sqlite,
    "shelve": by_shelve,
    "logging": by_logging,
    "font_cache": by_font_cache,
    "pycache": by_pycache,
}
ACTS = {
    **{name: lambda name=name, act=act: left(name, act) for name, act in PLACES.items()},
    "tempfile": lambda: tempfile.mkdtemp(prefix="blindcast-attack-a11-tempfile-"),
    "pycache_of_import": pycache_of_import,
    "libraries": libraries,
    "entry_rewritten": entry_rewritten,
    "times": marked(set_times, has_time(63)),
    "times_libc": marked(set_times_libc, has_time(62)),
    "times_raw": marked(set_times_raw, has_time(61)),
    "times_descriptor": marked(set_times_of_descriptor, has_time(60)),
    "mode": marked(set_mode, lambda path: os.stat(path).st_mode & stat.S_IXGRP),
    "mode_raw": marked(set_mode_raw, lambda path: os.stat(path).st_mode & stat.S_IXOTH),
    "attribute": marked(set_attribute, has_attribute),
    "attribute_raw": marked(set_attribute_raw, has_attribute),
    "flags": marked(set_flags, lambda path: True),
    "proc_files": proc_files,
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in ACTS.items():
                attempt(name, act)
        return 0.5
