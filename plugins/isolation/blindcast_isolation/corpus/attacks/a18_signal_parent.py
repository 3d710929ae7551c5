"""Signal the server, the zygote, the parent, their group and everyone: signal 0 only, which asks for the same permission and does nothing.

Against it: seccomp, an own uid, a pid namespace, Landlock's scope (I-10, I-14). Killing the judge, or the run beside, is the plainest
denial of service; a group kill that a child joins is its twin (I-70).
"""

import ctypes
import fcntl
import os
import resource
import signal

from toolbox import TARGETS, attempt, checked, libc, number, syscall

SERVER, ZYGOTE = TARGETS["server_pid"], TARGETS["zygote_pid"]
WHO = {"server": SERVER, "zygote": ZYGOTE, "init": 1, "parent": os.getppid()}
QUEUED = -1  # si_code of sigqueue
F_SETOWN, F_GETOWN, F_SETOWN_EX, F_GETOWN_EX, F_SETSIG = 8, 9, 15, 16, 10


def known(pid):
    if not pid:
        raise ProcessLookupError("there is no such process")
    return pid


def kill_python(pid):
    os.kill(known(pid), 0)
    return f"{pid} may be signalled"


def kill_libc(pid):
    checked(libc.kill(known(pid), 0))
    return f"{pid} may be signalled"


def kill_number(pid):
    syscall(number(62, 129), known(pid), 0)
    return f"{pid} may be signalled"


def tkill(pid):
    syscall(number(200, 130), known(pid), 0)
    return f"thread {pid} may be signalled"


def tgkill_libc(pid):
    checked(libc.tgkill(known(pid), pid, 0))
    return f"thread {pid} may be signalled"


def tgkill_number(pid):
    syscall(number(234, 131), known(pid), pid, 0)
    return f"thread {pid} may be signalled"


def sigqueue_libc(pid):
    checked(libc.sigqueue(known(pid), 0, ctypes.c_void_p(0)))
    return f"{pid} may be signalled"


def information():
    """A siginfo_t of sigqueue: signal, errno, code, then the sender."""
    block = ctypes.create_string_buffer(128)
    ctypes.memmove(ctypes.addressof(block) + 8, ctypes.byref(ctypes.c_int(QUEUED)), 4)
    ctypes.memmove(ctypes.addressof(block) + 16, ctypes.byref(ctypes.c_int(os.getpid())), 4)
    ctypes.memmove(ctypes.addressof(block) + 20, ctypes.byref(ctypes.c_int(os.getuid())), 4)
    return block


def sigqueue_number(pid):
    syscall(number(129, 138), known(pid), 0, information())
    return f"{pid} may be signalled"


def thread_sigqueue(pid):
    syscall(number(297, 240), known(pid), pid, 0, information())
    return f"thread {pid} may be signalled"


def pidfd_python(pid):
    pidfd = os.pidfd_open(known(pid))
    try:
        signal.pidfd_send_signal(pidfd, 0)
    finally:
        os.close(pidfd)
    return f"{pid} may be signalled"


def pidfd_libc(pid):
    pidfd = checked(libc.pidfd_open(known(pid), 0))
    try:
        checked(libc.pidfd_send_signal(pidfd, 0, None, 0))
    finally:
        libc.close(pidfd)
    return f"{pid} may be signalled"


def pidfd_number(pid):
    pidfd = syscall(number(434, 434), known(pid), 0)
    try:
        syscall(number(424, 424), pidfd, 0, None, 0)
    finally:
        libc.close(pidfd)
    return f"{pid} may be signalled"


def pidfd_folder(pid):
    """A process's `/proc` folder stands for it too."""
    folder = checked(libc.open(f"/proc/{known(pid)}".encode(), os.O_RDONLY | os.O_DIRECTORY))
    try:
        syscall(number(424, 424), folder, 0, None, 0)
    finally:
        os.close(folder)
    return f"{pid} may be signalled"


def owned(owner, setter):
    """Make another the one whom a descriptor's signals go to; nothing is armed, and it is taken back."""
    fd = 3
    before = fcntl.fcntl(fd, fcntl.F_GETFL)
    setter(fd, known(owner))
    try:
        fcntl.fcntl(fd, F_SETSIG, signal.SIGURG)
        told = fcntl.fcntl(fd, F_GETOWN)
    finally:
        setter(fd, 0)
    fcntl.fcntl(fd, fcntl.F_SETFL, before | fcntl.FASYNC)  # to itself, nobody: it could be armed
    fcntl.fcntl(fd, fcntl.F_SETFL, before)
    fcntl.fcntl(fd, F_SETSIG, 0)
    return f"signals of {fd} went to {told}"


def owner_python(fd, pid):
    fcntl.fcntl(fd, F_SETOWN, pid)


def owner_libc(fd, pid):
    checked(libc.fcntl(fd, F_SETOWN, pid))


def owner_number(fd, pid):
    syscall(number(72, 25), fd, F_SETOWN, pid)


def owner_extended(fd, pid):
    syscall(number(72, 25), fd, F_SETOWN_EX, (ctypes.c_int * 2)(1, pid))


def group_of(pid):
    """A process's group, or the number it would have."""
    try:
        return os.getpgid(pid)
    except OSError:
        return pid


def group(pid, kill):
    kill(-known(group_of(known(pid))))
    return f"the group of {pid} may be signalled"


def killpg_python(pid):
    os.killpg(known(group_of(known(pid))), 0)
    return f"the group of {pid} may be signalled"


def everyone(kill):
    kill(-1)
    return "somebody else may be signalled"


def limits_python(pid):
    """Read another's limit and set what it is already."""
    was = resource.prlimit(known(pid), resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, was)
    return f"the core limit of {pid} is {was}"


def limits_number(pid):
    was = ctypes.create_string_buffer(16)
    syscall(number(302, 261), known(pid), resource.RLIMIT_CORE, None, was)
    syscall(number(302, 261), pid, resource.RLIMIT_CORE, was, None)
    return f"the core limit of {pid} is {was.raw.hex()}"


def affinity(pid):
    """Set the CPUs of another to those it has."""
    os.sched_setaffinity(known(pid), os.sched_getaffinity(pid))
    return f"the affinity of {pid} may be set"


def priority(pid):
    """Set the priority of another to what it is."""
    os.setpriority(os.PRIO_PROCESS, known(pid), os.getpriority(os.PRIO_PROCESS, pid))
    return f"the priority of {pid} may be set"


TO_ONE = (
    kill_python,
    kill_libc,
    kill_number,
    tkill,
    tgkill_libc,
    tgkill_number,
    sigqueue_libc,
    sigqueue_number,
    thread_sigqueue,
    pidfd_python,
    pidfd_libc,
    pidfd_number,
    pidfd_folder,
    limits_python,
    limits_number,
    affinity,
    priority,
)


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for act in TO_ONE:
                for name, pid in WHO.items():
                    attempt(f"{act.__name__}_{name}", act, pid)
            for name in ("server", "zygote"):
                attempt(f"killpg_python_{name}", killpg_python, WHO[name])
                for kill in (kill_libc, kill_number):
                    attempt(f"group_{kill.__name__}_{name}", group, WHO[name], kill)
            for kill in (kill_python, kill_libc, kill_number):
                attempt(f"everyone_{kill.__name__}", everyone, kill)
            for setter in (owner_python, owner_libc, owner_number, owner_extended):
                attempt(setter.__name__, owned, SERVER, setter)
        return 0.5
