"""Leaves kernel objects for the next run to find: sockets, SysV and POSIX objects, keys, memory and locks held by a daemon (A-12).

A daemon lives one second at most, a key two. Against it: seccomp, a namespace for IPC of its own.
"""

import ctypes
import fcntl
import mmap
import os
import socket
import time
from contextlib import suppress
from multiprocessing import shared_memory

from toolbox import HERE, TARGETS, attempt, checked, libc, number, syscall

NAME = f"blindcast-attack-a12-{os.getpid()}"
KEY = 0x0B11D000 + os.getpid() % 4_096
NOTE = b"blindcast-attack: left for the next run"
CREATE = 0o1000 | 0o666
DAEMON_S = 0.8
READABLE = (os.path.join(HERE, "toolbox.py"), os.__file__, TARGETS["raw_link"])
KEEP = []  # what would be closed when it is collected


def daemon(hold):
    """A process of its own session that does `hold()` and stays a little; `got` where it lives and holds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                hold()
                os.write(writing, b"held")
                time.sleep(DAEMON_S)
        except BaseException as error:
            os.write(writing, ascii(error).encode()[:200])
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 200).decode()
    os.close(reading)
    if said != "held":
        raise OSError(said or "the daemon said nothing")
    return "a daemon holds it"


def abstract_bind():
    """A name in the abstract space, taken while its owner lives."""
    KEEP.append(socket.socket(socket.AF_UNIX))
    KEEP[-1].bind(f"\0{NAME}")
    KEEP[-1].listen(1)
    return f"listens at @{NAME}"


def abstract_libc(name=f"{NAME}-libc"):
    address = ctypes.create_string_buffer(b"\x01\x00\x00" + name.encode())
    fd = checked(libc.socket(1, 1, 0))
    checked(libc.bind(fd, address, len(address) - 1))
    return f"bound @{name} by descriptor {fd}"


def abstract_raw():
    address = ctypes.create_string_buffer(b"\x01\x00\x00" + NAME.encode() + b"-raw")
    fd = syscall(number(41, 198), 1, 2, 0)
    syscall(number(49, 200), fd, address, len(address) - 1)
    return f"bound @{NAME}-raw by descriptor {fd}"


def abstract_daemon():
    return daemon(lambda: abstract_libc(f"{NAME}-daemon"))


def netlink_name():
    """A netlink port, an address of its own kind."""
    fd = checked(libc.socket(16, 3, 0))
    return f"netlink socket {fd}"


def shm():
    segment = checked(libc.shmget(KEY, 4_096, CREATE))
    libc.shmat.restype = ctypes.c_void_p
    address = checked(libc.shmat(segment, None, 0))
    ctypes.memmove(address, NOTE, len(NOTE))
    return f"segment {segment} of key {KEY:#x}"


def shm_raw():
    return f"segment {syscall(number(29, 194), KEY + 1, 4_096, CREATE)}"


def shm_earlier():
    """The segment that an earlier run left."""
    segment = checked(libc.shmget(TARGETS["sysv_key"], 0, 0))
    libc.shmat.restype = ctypes.c_void_p
    return ctypes.string_at(checked(libc.shmat(segment, None, 0o10000)), 64)


def shm_all():
    """Every segment there is, by index: SHM_STAT tells the id."""
    found = []
    for index in range(64):
        kept = ctypes.create_string_buffer(256)
        segment = libc.shmctl(index, 13, kept)
        if segment >= 0:
            found.append(segment)
    return f"segments {found}" if found else None


def sem():
    semaphores = checked(libc.semget(KEY, 8, CREATE))
    for i in range(8):
        checked(libc.semctl(semaphores, i, 16, 63 + i))
    return f"semaphores {semaphores} of key {KEY:#x} with 8 numbers"


def sem_raw():
    return f"semaphores {syscall(number(64, 190), KEY + 1, 1, CREATE)}"


def msg():
    queue = checked(libc.msgget(KEY, CREATE))
    message = ctypes.create_string_buffer(b"\x01" + bytes(7) + NOTE)
    checked(libc.msgsnd(queue, message, len(NOTE), 0o4000))
    return f"queue {queue} of key {KEY:#x} with a message"


def msg_raw():
    return f"queue {syscall(number(68, 186), KEY + 1, CREATE)}"


def mq():
    """A POSIX queue is a name that stays until it is unlinked."""
    fd = syscall(number(240, 180), NAME.encode(), os.O_CREAT | os.O_RDWR, 0o600, 0)
    return f"queue /{NAME} by descriptor {fd}"


def mq_libc():
    rt = ctypes.CDLL("librt.so.1", use_errno=True)
    return f"queue /{NAME}-libc by descriptor {checked(rt.mq_open(f'/{NAME}-libc'.encode(), os.O_CREAT | os.O_RDWR, 0o600, None))}"


def shm_open():
    fd = checked(libc.shm_open(f"/{NAME}".encode(), os.O_CREAT | os.O_RDWR, 0o600))
    os.close(fd)
    return f"/dev/shm/{NAME}"


def shared_block():
    block = shared_memory.SharedMemory(f"{NAME}-block", create=True, size=64)
    block.buf[: len(NOTE)] = NOTE
    KEEP.append(block)
    return f"/dev/shm/{NAME}-block"


def sem_open():
    libc.sem_open.restype = ctypes.c_void_p
    checked(libc.sem_open(f"/{NAME}".encode(), os.O_CREAT, 0o600, 1))
    return f"/dev/shm/sem.{NAME}"


def noted(ring):
    """A key in a ring, gone in two seconds: rings are no part of any namespace that a test could throw away."""
    key = syscall(number(248, 217), b"user", NAME.encode(), NOTE, len(NOTE), ring)
    try:
        syscall(number(250, 219), 15, key, 2)
    except OSError:
        syscall(number(250, 219), 9, key, ring)
    return f"key {key} in ring {ring}"


def add_key(ring):
    return lambda: noted(ring)


def persistent_ring():
    """A ring that outlives every process of its uid, for three days; it is given back."""
    ring = syscall(number(250, 219), 22, -1, -3)
    loot = noted(ring)
    with suppress(OSError):
        syscall(number(250, 219), 3, ring)
    return loot


def join_session():
    return f"session ring {syscall(number(250, 219), 1, NAME.encode())}"


def memfd():
    fd = os.memfd_create(NAME)
    os.write(fd, NOTE)
    KEEP.append(fd)
    return f"descriptor {fd}"


def memfd_raw():
    return f"descriptor {syscall(number(319, 279), NAME.encode(), 0)}"


def memfd_secret():
    return f"descriptor {syscall(number(447, 447), 0)}"


def memfd_daemon():
    def hold():
        os.write(os.memfd_create(NAME), NOTE)

    return daemon(hold)


def memory_daemon():
    def hold():
        KEEP.append(mmap.mmap(-1, 4_096))
        KEEP[-1][: len(NOTE)] = NOTE

    return daemon(hold)


def locked(act):
    """A lock on a file that the next run can read as well. Raises the first OSError."""
    first = None
    for path in READABLE:
        try:
            fd = checked(libc.open(os.fsencode(path), os.O_RDONLY))
            KEEP.append(fd)
            act(fd)
        except OSError as error:
            first = first or error
            continue
        return f"holds a lock on {path}"
    raise first


def flock():
    return locked(lambda fd: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB))


def flock_raw():
    return locked(lambda fd: syscall(number(73, 32), fd, 6))


def record_lock():
    return locked(lambda fd: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB))


def description_lock():
    """F_OFD_SETLK, a lock of the description and not of the process."""
    lock = (ctypes.c_int64 * 4)(0, 0, 1, 0)
    return locked(lambda fd: checked(libc.fcntl(fd, 37, ctypes.byref(lock))))


def lease():
    return locked(lambda fd: fcntl.fcntl(fd, 1024, fcntl.F_RDLCK))


def notify():
    """A watch on a folder that others use too (F_NOTIFY, inotify)."""
    fd = checked(libc.open(os.fsencode(HERE), os.O_RDONLY))
    signal_of_io = 29
    libc.signal(signal_of_io, ctypes.c_void_p(1))  # what it would be told is ignored
    return f"watches by {fd}: {checked(libc.fcntl(fd, 1026, 0x20))}"


def inotify():
    fd = syscall(number(294, 26), 0)
    return f"watch {syscall(number(254, 27), fd, os.fsencode(HERE), 0x20)}"


def lock_daemon():
    return daemon(flock)


def bpf_map():
    attributes = (ctypes.c_uint32 * 16)(2, 4, 8, 1)
    return f"map {syscall(number(321, 280), 0, ctypes.byref(attributes), 64)}"


def timer():
    """A timer with a signal of its own for later."""
    timer_id = ctypes.c_int()
    syscall(number(222, 107), 1, 0, ctypes.byref(timer_id))
    return f"timer {timer_id.value}"


def event():
    return f"eventfd {syscall(number(290, 19), 0, 0)}"


def pipe():
    ends = os.pipe()
    KEEP.extend(ends)
    return f"pipe {ends}"


ACTS = {
    "abstract": abstract_bind,
    "abstract_libc": abstract_libc,
    "abstract_raw": abstract_raw,
    "abstract_daemon": abstract_daemon,
    "netlink": netlink_name,
    "shm": shm,
    "shm_raw": shm_raw,
    "shm_earlier": shm_earlier,
    "shm_all": shm_all,
    "sem": sem,
    "sem_raw": sem_raw,
    "msg": msg,
    "msg_raw": msg_raw,
    "mq": mq,
    "mq_libc": mq_libc,
    "shm_open": shm_open,
    "shared_block": shared_block,
    "sem_open": sem_open,
    "key_of_process": add_key(-2),
    "key_of_session": add_key(-3),
    "key_of_user": add_key(-4),
    "key_of_user_session": add_key(-5),
    "persistent_ring": persistent_ring,
    "join_session": join_session,
    "memfd": memfd,
    "memfd_raw": memfd_raw,
    "memfd_secret": memfd_secret,
    "memfd_daemon": memfd_daemon,
    "memory_daemon": memory_daemon,
    "flock": flock,
    "flock_raw": flock_raw,
    "record_lock": record_lock,
    "description_lock": description_lock,
    "lease": lease,
    "notify": notify,
    "inotify": inotify,
    "lock_daemon": lock_daemon,
    "bpf_map": bpf_map,
    "timer": timer,
    "event": event,
    "pipe": pipe,
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in ACTS.items():
                attempt(name, act)
        return 0.5
