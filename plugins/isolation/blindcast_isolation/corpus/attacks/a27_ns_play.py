"""Make new namespaces, and in them mounts, roots and devices; join others'.

Against it: seccomp, no capability (I-14). An ordinary user's own user namespace opens the kernel's mount and network code, where most of
the last years' privilege exploits begin (CVE-2022-0185 by fsopen, CVE-2023-2640 by overlays). Nothing outside a namespace of its own is
mounted or unmounted.
"""

import contextlib
import ctypes
import functools
import os

from toolbox import HERE, TARGETS, attempt, checked, libc, number, syscall

held = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock over a fork
KINDS = {
    "user": 0x1000_0000,
    "mnt": 0x0002_0000,
    "pid": 0x2000_0000,
    "net": 0x4000_0000,
    "ipc": 0x0800_0000,
    "uts": 0x0400_0000,
    "cgroup": 0x0200_0000,
    "time": 0x80,
}
SIGCHLD = 17
NODEV, REMOUNT, BIND, REC, PRIVATE, SHARED = 4, 32, 4_096, 16_384, 1 << 18, 1 << 20
DETACH = 2
CHR, FIFO = 0o020_000, 0o010_000
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
OPEN_TREE_CLONE = 1
FSCONFIG_CREATE = 6


def in_child(act):
    """What an act gives in a child of this one; where there may be none, here: the refusal is the same."""
    read, write = os.pipe() if is_free() else (-1, -1)
    if read < 0:
        return act()
    pid = checked(held.fork())
    if pid == 0:
        try:
            text = f"+{act()}"
        except BaseException as error:
            text = f"-{getattr(error, 'errno', 0) or 0} {getattr(error, 'strerror', None) or error}"
        with contextlib.suppress(BaseException):
            os.write(write, text.encode()[:4_000])
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    text = os.read(read, 4_096).decode()
    os.close(read)
    if not text.startswith("+"):
        errno, _, words = text[1:].partition(" ")
        raise OSError(int(errno or 0), words)
    return text[1:]


@functools.cache
def is_free():
    """Whether a child can be had."""
    pid = held.fork()
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
    return pid > 0


def unshare_python(flags):
    if not hasattr(os, "unshare"):
        raise NotImplementedError("this interpreter has no os.unshare")
    os.unshare(flags)
    return f"unshared {flags:#x}"


def unshare_libc(flags):
    checked(held.unshare(flags))
    return f"unshared {flags:#x}"


def unshare_number(flags):
    syscall(number(272, 97), flags)
    return f"unshared {flags:#x}"


def with_user(flags, unshare):
    """A kind of namespace, with a user namespace of its own to be root in."""
    return in_child(lambda: unshare(flags | KINDS["user"]))


def cloned(flags):
    """clone(2) with the flag: the child ends at once."""
    pid = checked(held.syscall(ctypes.c_long(number(56, 220)), ctypes.c_long(flags | SIGCHLD), *[ctypes.c_long(0)] * 4))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return f"a process with {flags:#x}"


def cloned3(flags):
    pid = checked(held.syscall(ctypes.c_long(number(435, 435)), (ctypes.c_uint64 * 11)(flags, 0, 0, 0, SIGCHLD), ctypes.c_long(88)))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return f"a process with {flags:#x}"


def as_root(act):
    """An act in user and mount namespaces of its own, with uid 0 mapped; where they are refused, as it stands and without any right."""

    def inside():
        uid, gid = os.getuid(), os.getgid()
        try:
            checked(held.unshare(KINDS["user"] | KINDS["mnt"]))
        except OSError:
            if uid == 0:
                raise
            return act()
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            fd = checked(held.open(f"/proc/self/{name}".encode(), os.O_WRONLY))
            held.write(fd, text.encode(), len(text))
            held.close(fd)
        return act()

    return in_child(inside)


def names(path):
    """What a folder holds, past the interpreter."""
    fd = checked(libc.open(path, os.O_RDONLY | os.O_DIRECTORY))
    try:
        return os.listdir(fd)[:5]
    finally:
        os.close(fd)


def mount(source, target, kind, flags, data=None):
    libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
    checked(libc.mount(source, target, kind, flags, data))


def mount_number(source, target, kind, flags, data=None):
    syscall(number(165, 40), source, target, kind, ctypes.c_long(flags), data)


FOLDER = HERE.encode()


def tmpfs():
    mount(b"none", FOLDER, b"tmpfs", 0)
    return "an in-memory file system is mounted"


def tmpfs_number():
    mount_number(b"none", FOLDER, b"tmpfs", 0)
    return "an in-memory file system is mounted"


def bind():
    mount(b"/", FOLDER, None, BIND | REC)
    return f"the root is bound: {names(FOLDER)}"


def remount():
    mount(b"none", b"/", None, REMOUNT | BIND)
    return "the root is writable"


def shared():
    mount(b"none", b"/", None, SHARED | REC)
    return "mounts propagate"


def private():
    mount(b"none", b"/", None, PRIVATE | REC)
    return "mounts are private"


def proc():
    """A `/proc` of its own needs a pid namespace of its own."""
    checked(held.unshare(KINDS["pid"]))
    pid = checked(held.fork())
    if pid == 0:
        done = held.mount(b"proc", FOLDER, b"proc", ctypes.c_ulong(0), None)
        os._exit(0 if done == 0 else 1)
    if os.waitpid(pid, 0)[1]:
        raise PermissionError("proc is not mounted")
    return "proc is mounted"


def overlay():
    mount(b"none", FOLDER, b"overlay", 0, b"lowerdir=/usr:" + FOLDER)
    return "an overlay is mounted"


def umount():
    """Of what it has mounted itself, where it could; else of a folder that is no mount."""
    with contextlib.suppress(OSError):
        tmpfs()
    checked(libc.umount2(FOLDER, DETACH))
    return "a mount is taken away"


def umount_number():
    with contextlib.suppress(OSError):
        tmpfs()
    syscall(number(166, 39), FOLDER, DETACH)
    return "a mount is taken away"


def pivot_root():
    tmpfs()
    checked(libc.mkdir(FOLDER + b"/old", 0o700))
    syscall(number(155, 41), FOLDER, FOLDER + b"/old")
    return f"a new root: {names(b'/')}"


def pivot_root_bare():
    """As it stands: the folder is no mount, so the kernel's own checks are all that answers."""
    syscall(number(155, 41), FOLDER, FOLDER)
    return "a new root"


def chroot_python():
    os.chroot(FOLDER)
    return f"a new root: {names(b'/')}"


def chroot_libc():
    checked(libc.chroot(FOLDER))
    return "a new root"


def chroot_number():
    syscall(number(161, 51), FOLDER)
    return "a new root"


def chroot_out():
    """The old way out of a root: another one within, and many steps up."""
    checked(libc.chroot(FOLDER))
    for _ in range(20):
        os.chdir("..")
    checked(libc.chroot(b"."))
    return f"outside: {names(b'/')}"


def node(variant, kind, device, make):
    """A device node, or a pipe, in a folder that takes files; it is never opened and taken away at once."""
    path = f"{TARGETS['marker']}/blindcast-attack-{variant}".encode()
    make(path, kind | 0o600, device)
    libc.unlink(path)
    return f"a node of kind {kind:#o}"


def mknod_python(path, mode, device):
    os.mknod(path, mode, device)


def mknod_libc(path, mode, device):
    checked(libc.mknod(path, mode, ctypes.c_ulong(device)))


def mknod_number(path, mode, device):
    syscall(number(259, 33), AT_FDCWD, path, mode, device)


def open_tree():
    os.close(syscall(number(428, 428), AT_FDCWD, b"/", OPEN_TREE_CLONE | AT_RECURSIVE))
    return "a copy of the whole tree of mounts"


def fsopen():
    context = syscall(number(430, 430), b"tmpfs", 0)
    try:
        syscall(number(431, 431), context, FSCONFIG_CREATE, None, None, 0)
        mounted = syscall(number(432, 432), context, 0, 0)
    finally:
        os.close(context)
    syscall(number(429, 429), mounted, b"", AT_FDCWD, FOLDER, 4)
    os.close(mounted)
    return "a file system is made and moved into place"


def fspick():
    os.close(syscall(number(433, 433), AT_FDCWD, b"/", 0))
    return "a superblock is held"


def mount_setattr():
    attributes = (ctypes.c_uint64 * 4)(NODEV, 0, 0, 0)
    syscall(number(442, 442), AT_FDCWD, b"/", 0, attributes, 32)
    return "the root's attributes are changed"


def setns(kind, unshared):
    """Join a namespace of the server, or of the first process."""
    fd = checked(libc.open(f"/proc/{unshared}/ns/{kind}".encode(), os.O_RDONLY))
    try:
        syscall(number(308, 268), fd, 0)
    finally:
        os.close(fd)
    return f"joined {kind} of {unshared}"


def setns_pidfd():
    """All at once, by a pidfd."""
    pidfd = syscall(number(434, 434), TARGETS["server_pid"], 0)
    try:
        syscall(number(308, 268), pidfd, KINDS["mnt"] | KINDS["net"])
    finally:
        os.close(pidfd)
    return "joined the server"


def host_name():
    checked(libc.sethostname(b"blindcast-attack", 16))
    return "the host has another name"


ROOT_ACTS = (
    tmpfs,
    tmpfs_number,
    bind,
    remount,
    shared,
    private,
    proc,
    overlay,
    umount,
    umount_number,
    pivot_root,
    pivot_root_bare,
    chroot_python,
    chroot_libc,
    chroot_number,
    chroot_out,
    open_tree,
    fsopen,
    fspick,
    mount_setattr,
)


class Predictor:
    tries = True  # once a run: new namespaces take the kernel a while

    def predict(self, view):
        if self.tries:
            self.tries = False
            for kind, flag in KINDS.items():
                for unshare in (unshare_python, unshare_libc, unshare_number):
                    attempt(f"{unshare.__name__}_{kind}", lambda u=unshare, f=flag: in_child(lambda: u(f)))
                attempt(f"with_user_{kind}", with_user, flag, unshare_number)
                attempt(f"clone_{kind}", cloned, KINDS["user"] | (flag if kind != "time" else 0))
                attempt(f"clone3_{kind}", cloned3, KINDS["user"] | flag)
            for act in ROOT_ACTS:
                attempt(act.__name__, as_root, act)
            for name, make in (("python", mknod_python), ("libc", mknod_libc), ("number", mknod_number)):
                attempt(f"device_{name}", node, f"device_{name}", CHR, os.makedev(1, 3), make)
                attempt(f"pipe_{name}", node, f"pipe_{name}", FIFO, 0, make)
            for kind in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup"):
                attempt(f"setns_server_{kind}", in_child_setns, kind, TARGETS["server_pid"])
                attempt(f"setns_init_{kind}", in_child_setns, kind, 1)
            attempt("setns_pidfd", in_child, setns_pidfd)
            attempt("host_name", as_private, host_name)
        return 0.5


def in_child_setns(kind, pid):
    return in_child(lambda: setns(kind, pid))


def as_private(act):
    """An act that changes the machine's name, in a namespace for names of its own, or not at all as root."""

    def inside():
        try:
            checked(held.unshare(KINDS["user"] | KINDS["uts"]))
        except OSError:
            if os.getuid() == 0:
                raise
        return act()

    return in_child(inside)
