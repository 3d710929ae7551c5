"""Try to become uid 0, or to gain any capability: by calls, by set-uid and capable programs, by another's namespaces, by key rings.

Against it: no-new-privs, nosuid mounts, seccomp, an empty bounding set (I-10). A program that was started with privileges it should not
have kept is how CVE-2021-4034 (pkexec) and CVE-2021-3156 (sudo) made every local account root.
"""

import contextlib
import ctypes
import os
import time

from toolbox import TARGETS, attempt, checked, libc, number, syscall

SETUID, CAPABLE = TARGETS["setuid_id"], TARGETS["capable"]
NONE = 0xFFFF_FFFF
PR_CAP_AMBIENT, RAISE, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_SET_SECUREBITS = 47, 2, 8, 38, 28
JOIN_SESSION, GET_PERSISTENT, SESSION_TO_PARENT, SEARCH, DESCRIBE = 1, 22, 18, 10, 6
VERSION_3 = 0x2008_0522
WAIT_S = 0.4

held = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock over a fork


def am_root():
    """What there is to show: None while no id is 0."""
    ids = (*os.getresuid(), *os.getresgid())
    return f"ids {ids}" if 0 in ids else None


def ids_python(name, *args):
    getattr(os, name)(*args)
    return am_root()


def ids_libc(name, *args):
    checked(getattr(libc, name)(*(ctypes.c_uint(arg) for arg in args)))
    return am_root()


def ids_number(call, *args):
    syscall(call, *args)
    return am_root()


def fsuid_number():
    """It never fails: asked twice it tells what was set."""
    syscall(number(122, 151), 0)
    now = syscall(number(122, 151), os.getuid())
    return "the file system takes it for uid 0" if now == 0 else None


def groups_python():
    os.setgroups([0])
    return f"groups {os.getgroups()}" if 0 in os.getgroups() else None


def groups_number():
    syscall(number(116, 159), 1, (ctypes.c_uint * 1)(0))
    return f"groups {os.getgroups()}" if 0 in os.getgroups() else None


def capabilities():
    header, data = (ctypes.c_uint * 2)(VERSION_3, 0), (ctypes.c_uint * 6)()
    checked(libc.capget(header, data))
    return list(data)


def capset_libc():
    header, data = (ctypes.c_uint * 2)(VERSION_3, 0), (ctypes.c_uint * 6)(*[NONE] * 6)
    checked(libc.capset(header, data))
    return f"capabilities {capabilities()}"


def capset_number():
    header, data = (ctypes.c_uint * 2)(VERSION_3, 0), (ctypes.c_uint * 6)(*[NONE] * 6)
    syscall(number(126, 91), header, data)
    return f"capabilities {capabilities()}"


def prctl(option, *args):
    return checked(libc.prctl(option, *(ctypes.c_ulong(arg) for arg in (*args, 0, 0, 0, 0)[:4])))


def ambient():
    prctl(PR_CAP_AMBIENT, RAISE, 21)
    return "an ambient capability was raised"


def securebits():
    prctl(PR_SET_SECUREBITS, 0)
    return "secure bits were set"


def privileges_again():
    """No-new-privs is for good; a kernel that took it back would say 0."""
    prctl(PR_SET_NO_NEW_PRIVS, 0)
    return "no-new-privs was taken back"


def setns(kind, way):
    fd = checked(libc.open(f"/proc/{TARGETS['server_pid']}/ns/{kind}".encode(), os.O_RDONLY))
    try:
        checked(libc.setns(fd, 0)) if way == "libc" else syscall(number(308, 268), fd, 0)
    finally:
        os.close(fd)
    return f"joined the {kind} namespace of the server"


def setns_pidfd():
    pidfd = syscall(number(434, 434), TARGETS["server_pid"], 0)
    try:
        syscall(number(308, 268), pidfd, 0x2000_0000 | 0x0002_0000)
    finally:
        os.close(pidfd)
    return "joined the server's namespaces"


def keyctl(operation, *args):
    """Key rings of another: a session by name, root's persistent ring, the session of the parent."""
    return syscall(number(250, 219), operation, *args)


def key_persistent():
    return f"root's persistent key ring {keyctl(GET_PERSISTENT, 0, -4)}"


def key_parent():
    """A parent of the same uid takes the ring; that makes nobody root."""
    keyctl(SESSION_TO_PARENT)
    return am_root()


def key_session():
    """Root's session ring by its usual name: joining makes an own one of that name, which is nothing."""
    ring = keyctl(JOIN_SESSION, b"_ses")
    block = ctypes.create_string_buffer(200)
    keyctl(DESCRIBE, ring, block, len(block))
    kind, uid, *_ = block.value.decode().split(";")
    return block.value if uid == "0" and os.getuid() != 0 else None


def forked_libc():
    return checked(held.fork())


def forked_number():
    if number(57) is None:
        return checked(held.syscall(ctypes.c_long(220), ctypes.c_long(17), *[ctypes.c_long(0)] * 4))
    return checked(held.syscall(ctypes.c_long(57)))


def replaced(fork):
    """A way to start a program: fork, then the C library's exec in the child."""

    def start(path, argv, out):
        pid = fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                held.dup2(out, 1)
                held.dup2(out, 2)
                texts = (ctypes.c_char_p * (len(argv) + 1))(*map(os.fsencode, argv), None)
                held.execve(os.fsencode(path), texts, (ctypes.c_char_p * 1)(None))
            os._exit(127)
        return pid

    return start


def start_python(path, argv, out):
    """What subprocess stands on: it raises no audit event, so it is not the hook that refuses."""
    import _posixsubprocess

    read, write = os.pipe()
    head = (
        [*map(os.fsencode, argv)],
        [os.fsencode(path)],
        False,
        (write,),
        None,
        [],
        -1,
        -1,
        -1,
        out,
        -1,
        out,
        read,
        write,
        True,
        False,
        -1,
    )
    try:
        try:
            return _posixsubprocess.fork_exec(*head, None, None, None, -1, None, False)
        except TypeError:  # from 3.14 on
            return _posixsubprocess.fork_exec(*head, None, None, None, -1, None)
    finally:
        os.close(read)
        os.close(write)


def start_spawn(path, argv, out):
    """The C library's posix_spawn."""
    actions, pid = ctypes.create_string_buffer(256), ctypes.c_int()
    libc.posix_spawn_file_actions_init(actions)
    libc.posix_spawn_file_actions_adddup2(actions, out, 1)
    libc.posix_spawn_file_actions_adddup2(actions, out, 2)
    texts = (ctypes.c_char_p * (len(argv) + 1))(*map(os.fsencode, argv), None)
    errno = libc.posix_spawn(ctypes.byref(pid), os.fsencode(path), actions, None, texts, (ctypes.c_char_p * 1)(None))
    if errno:
        raise OSError(errno, os.strerror(errno))
    return pid.value


WAYS = {"python": start_python, "libc": replaced(forked_libc), "number": replaced(forked_number), "spawn": start_spawn}


def finished(pid):
    """Wait for a child of this one; one that hangs is ended."""
    deadline = time.monotonic() + WAIT_S
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            libc.kill(pid, 9)
            os.waitpid(pid, 0)
            return
        time.sleep(0.002)


def tried(path, start):
    """A program that is there, to be started in this way; where it is not, whether any could be."""
    if path and os.path.exists(path):
        return path
    finished(start("/proc/self/exe", ["python", "-I", "-S", "-c", ""], 1))
    raise FileNotFoundError(f"there is no {path or 'such program'}")


def as_root(path, argv, way):
    """What a program printed, where that says that it ran as root."""
    start = WAYS[way]
    tried(path, start)
    read, write = os.pipe()
    pid = start(path, argv, write)
    os.close(write)
    finished(pid)
    text = os.read(read, 4_096).decode("latin-1")
    os.close(read)
    return text if "euid=0(" in text or text.startswith("uid=0(") else None


def status_of(pid):
    fd = checked(libc.open(f"/proc/{pid}/status".encode(), os.O_RDONLY))
    try:
        return dict(line.split(":\t", 1) for line in os.read(fd, 8_192).decode().splitlines() if ":\t" in line)
    finally:
        os.close(fd)


def capable(way):
    """The capabilities of a program that has some by its file, read while it waits to print into a full pipe."""
    start = WAYS[way]
    tried(CAPABLE, start)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4_096))
    os.set_blocking(write, True)
    pid = start(CAPABLE, ["id"], write)
    os.close(write)
    deadline, found, name = time.monotonic() + 0.5, None, os.path.basename(CAPABLE)[:15]
    try:
        while time.monotonic() < deadline and found is None:
            status = status_of(pid)
            if status["State"].startswith("Z"):
                break
            if status["Name"] == name and status["State"].startswith("S"):
                found = status["CapEff"]
            time.sleep(0.002)
    finally:
        os.close(read)
        finished(pid)
    return f"effective capabilities {found}" if found and int(found, 16) else None


CALLS = {
    "setuid": (number(105, 146), (0,)),
    "setgid": (number(106, 144), (0,)),
    "setreuid": (number(113, 145), (0, 0)),
    "setregid": (number(114, 143), (0, 0)),
    "setresuid": (number(117, 147), (0, 0, 0)),
    "setresgid": (number(119, 149), (0, 0, 0)),
}


class Predictor:
    tries = True  # once a run: a program that asks for a password waits before it says no

    def predict(self, view):
        if not self.tries:
            return 0.5
        self.tries = False
        for name, (call, args) in CALLS.items():
            attempt(f"{name}_python", ids_python, name, *args)
            attempt(f"{name}_libc", ids_libc, name, *args)
            attempt(f"{name}_number", ids_number, call, *args)
        for act in (fsuid_number, groups_python, groups_number, capset_libc, capset_number, ambient, securebits, privileges_again):
            attempt(act.__name__, act)
        for kind in ("user", "mnt", "pid", "net", "uts", "ipc"):
            for way in ("libc", "number"):
                attempt(f"setns_{kind}_{way}", setns, kind, way)
        for act in (setns_pidfd, key_persistent, key_parent, key_session):
            attempt(act.__name__, act)
        for way in WAYS:
            attempt(f"setuid_id_{way}", as_root, SETUID, ["id"], way)
            attempt(f"su_{way}", as_root, "/usr/bin/su", ["su", "-c", "id", "root"], way)
            attempt(f"sudo_{way}", as_root, "/usr/bin/sudo", ["sudo", "-n", "id"], way)
            attempt(f"capable_{way}", capable, way)
        return 0.5
