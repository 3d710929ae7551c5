"""Make the calls that kernel exploits start with, each with arguments that do nothing: what answers can be reached.

Against it: seccomp's allow-list (I-14). Each call here has had its exploit: bpf CVE-2017-16995 and CVE-2021-3490, key rings
CVE-2016-0728, userfaultfd as the helper of most races, vmsplice CVE-2008-0600, modify_ldt CVE-2015-5157, perf CVE-2013-2094.
"""

import contextlib
import ctypes
import mmap
import os
import struct

from toolbox import HERE, attempt, checked, libc, number, syscall

held = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock over a fork
PAGE = 4_096
AT_FDCWD = -100
THREAD_RING, PROCESS_RING, SESSION_RING, USER_RING = -1, -2, -3, -4
ASK = 0xFFFF_FFFF
QUOTA_FORMAT, QUOTA_SYNC = 0x8000_0400, 0x8000_0100  # of users: the one asks, the other changes nothing
CLONE_FILES = 0x400


def opened(fd, what):
    os.close(fd)
    return what


def bpf_map():
    return opened(syscall(number(321, 280), 0, (ctypes.c_uint32 * 18)(2, 4, 8, 1), 72), "a BPF map")


def bpf_program():
    """Two instructions that return 0."""
    code = ctypes.create_string_buffer(bytes.fromhex("b700000000000000" + "9500000000000000"), 16)
    licence = ctypes.create_string_buffer(b"GPL")
    head = struct.pack("<IIQQIIQ", 1, 2, ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0)
    attributes = ctypes.create_string_buffer(head, 120)
    return opened(syscall(number(321, 280), 5, attributes, 120), "a BPF program")


def perf_event_open(kind, config):
    """A counter of this process alone, without the kernel's part."""
    attributes = ctypes.create_string_buffer(128)
    struct.pack_into("<IIQ", attributes, 0, kind, 128, config)
    struct.pack_into("<Q", attributes, 40, 1 | 1 << 5 | 1 << 6)  # disabled, exclude_kernel, exclude_hv
    return opened(syscall(number(298, 241), attributes, 0, -1, -1, 0), "a performance counter")


def perf_software():
    return perf_event_open(1, 1)


def perf_hardware():
    return perf_event_open(0, 1)


def perf_breakpoint():
    return perf_event_open(5, 0)


def userfaultfd():
    return opened(syscall(number(323, 282), os.O_CLOEXEC | os.O_NONBLOCK), "page faults, the kernel's too")


def userfaultfd_user():
    return opened(syscall(number(323, 282), os.O_CLOEXEC | os.O_NONBLOCK | 1), "page faults")


def userfaultfd_device():
    return opened(os.open("/dev/userfaultfd", os.O_RDWR), "page faults by the device")


def add_key(ring):
    """A key that is gone with the thread, or with the process."""
    key = syscall(number(248, 217), b"user", b"blindcast-attack", b"nothing", 7, ring)
    return f"key {key}"


def add_key_thread():
    return add_key(THREAD_RING)


def add_key_process():
    return add_key(PROCESS_RING)


def request_key():
    return f"key {syscall(number(249, 218), b'user', b'blindcast-attack', None, 0)}"


def keyctl():
    """The number of a ring, without making one."""
    return f"ring {syscall(number(250, 219), 0, SESSION_RING, 0)}"


def keyctl_join():
    return f"ring {syscall(number(250, 219), 1, None)}"


def kexec_load():
    """No segment, wrong flags: it can only be refused."""
    syscall(number(246, 104), 0, 0, None, 0xFFFF)
    return "a kernel is staged"


def kexec_file_load():
    syscall(number(320, 294), -1, -1, 0, b"", 0xFFFF)
    return "a kernel is staged"


def init_module():
    syscall(number(175, 105), b"", 0, b"")
    return "a module is loaded"


def finit_module():
    syscall(number(313, 273), -1, b"", 0)
    return "a module is loaded"


def delete_module():
    syscall(number(176, 106), b"blindcast-attack-none", os.O_NONBLOCK)
    return "a module is taken out"


def personality_ask():
    return f"personality {syscall(number(135, 92), ctypes.c_ulong(ASK)):#x}"


def personality_set():
    """Addresses that are not random, and executable where readable, for whatever comes next; taken back at once."""
    before = syscall(number(135, 92), ctypes.c_ulong(ASK))
    syscall(number(135, 92), ctypes.c_ulong(before | 0x004_0000 | 0x040_0000))
    now = syscall(number(135, 92), ctypes.c_ulong(ASK))
    syscall(number(135, 92), ctypes.c_ulong(before))
    return f"personality {now:#x}"


def personality_libc():
    return f"personality {checked(libc.personality(ctypes.c_ulong(ASK))):#x}"


def quotactl():
    """The format of a quota: nothing is changed."""
    block = ctypes.create_string_buffer(8)
    syscall(number(179, 60), ctypes.c_long(QUOTA_FORMAT), b"/nonexistent", 0, block)
    return "a quota's format"


def quota_sync():
    """Of every file system: it takes no device and no right."""
    syscall(number(179, 60), ctypes.c_long(QUOTA_SYNC), None, 0, None)
    return "quotas are written"


def quotactl_fd():
    fd = os.open(HERE, os.O_RDONLY)
    try:
        syscall(number(443, 443), fd, ctypes.c_long(QUOTA_SYNC), 0, None)
    finally:
        os.close(fd)
    return "quotas are written"


def in_child(act):
    """Whether an act is done in a child of this one; where there may be none, in the thread that asks."""
    pid = held.fork()
    if pid < 0:
        return act()
    if pid == 0:
        try:
            act()
        except OSError as error:
            os._exit(error.errno & 0x7F or 1)
        finally:
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))
    return "it was done in a child"


def traceme_libc():
    return in_child(lambda: checked(libc.ptrace(0, 0, None, None)) + 1)


def traceme_number():
    return in_child(lambda: syscall(number(101, 117), 0, 0, 0, 0) + 1)


def name_to_handle_at():
    """The handle of a file opens it again, past every folder above it, for whoever may."""
    handle, mount = ctypes.create_string_buffer(136), ctypes.c_int()
    struct.pack_into("<I", handle, 0, 128)
    syscall(number(303, 264), AT_FDCWD, HERE.encode(), handle, ctypes.byref(mount), 0)
    return f"handle {handle.raw[:24].hex()}"


def modify_ldt_read():
    if number(154) is None:
        raise NotImplementedError("no such system call on this architecture")
    return f"{syscall(number(154), 0, ctypes.create_string_buffer(PAGE), PAGE)} bytes of descriptor table"


def modify_ldt_write():
    """An empty entry."""
    if number(154) is None:
        raise NotImplementedError("no such system call on this architecture")
    entry = struct.pack("<IIII", 0, 0, 0, 0x28)
    syscall(number(154), 0x11, entry, len(entry))
    return "an entry of the descriptor table"


def vector(text):
    block = ctypes.create_string_buffer(text)
    return (ctypes.c_ulong * 2)(ctypes.addressof(block), len(text)), block


def vmsplice():
    """Into a pipe of its own; where there is none, into the log."""
    text, kept = vector(b"blindcast-attack-vmsplice\n")
    try:
        read, write = os.pipe()
    except OSError:
        return f"{syscall(number(278, 75), 1, text, 1, 0)} bytes into the log"
    try:
        return f"{syscall(number(278, 75), write, text, 1, 1)} bytes of {len(kept)} into a pipe"
    finally:
        os.close(read)
        os.close(write)


def logged(count):
    """End the line that was begun in the log."""
    os.write(1, b"\n")
    return f"{count} bytes into the log"


def splice():
    """From a file into the log: pages of the cache stand in a pipe, as in CVE-2022-0847."""
    fd = os.open(os.path.join(HERE, "toolbox.py"), os.O_RDONLY)
    try:
        return logged(syscall(number(275, 76), fd, None, 1, None, 1, 2))
    finally:
        os.close(fd)


def tee():
    return f"{syscall(number(276, 77), 3, 1, 1, 2)} bytes"


def sendfile():
    fd = os.open(os.path.join(HERE, "toolbox.py"), os.O_RDONLY)
    try:
        return logged(syscall(number(40, 71), 1, fd, None, 1))
    finally:
        os.close(fd)


def memfd_create():
    return opened(syscall(number(319, 279), b"blindcast-attack", 1), "a memory file")


def memfd_secret():
    return opened(syscall(number(447, 447), 0), "a secret memory file")


def pipe():
    for fd in os.pipe():
        os.close(fd)
    return "a pipe"


def epoll():
    return opened(syscall(number(291, 20), 0), "an epoll")


def eventfd():
    return opened(syscall(number(290, 19), 0, 0), "an event")


def signalfd():
    return opened(syscall(number(289, 74), -1, ctypes.create_string_buffer(8), 8, 0), "signals as a file")


def timerfd():
    return opened(syscall(number(283, 85), 1, 0), "a timer")


def timer_create():
    timer = ctypes.c_int()
    event = (ctypes.c_int * 16)(0, 0, 0, 1)  # SIGEV_NONE
    syscall(number(222, 107), 1, event, ctypes.byref(timer))
    syscall(number(226, 111), timer.value)
    return "a timer"


def inotify():
    return opened(syscall(number(294, 26), 0), "a watch")


def fanotify():
    return opened(syscall(number(300, 262), 0x200, 0), "a watch of mounts")


def landlock():
    return f"level {syscall(number(444, 444), None, 0, 1)}"


def seccomp_ask():
    action = ctypes.c_uint32(0x7FFF_0000)
    syscall(number(317, 277), 2, 0, ctypes.byref(action))
    return "an action is there"


def permissive():
    """A filter of one instruction, which allows everything, and its program."""
    code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF_0000), 8)
    return code, ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code)), 16)


def seccomp_listener():
    """A filter with a listener, whose answers could let calls go on."""
    kept, program = permissive()
    return in_child(lambda: syscall(number(317, 277), 1, 8, program) + len(kept))


def prctl_filter():
    kept, program = permissive()
    return in_child(lambda: checked(libc.prctl(22, ctypes.c_ulong(2), program, 0, 0)) + len(kept))


def prctl_name():
    checked(libc.prctl(15, ctypes.c_char_p(b"blindcast-x"), 0, 0, 0))
    return "another name"


def prctl_dumpable():
    """Undo what keeps others of its uid out; put back."""
    before = checked(libc.prctl(3, 0, 0, 0, 0))
    checked(libc.prctl(4, ctypes.c_ulong(1), 0, 0, 0))
    checked(libc.prctl(4, ctypes.c_ulong(before & 1), 0, 0, 0))
    return "it may be dumped"


def prctl_ptracer():
    checked(libc.prctl(0x59616D61, ctypes.c_ulong(0xFFFF_FFFF_FFFF_FFFF), 0, 0, 0))
    return "anyone may trace it"


def kcmp():
    return f"order {syscall(number(312, 272), os.getpid(), os.getpid(), 2, 0, 0)}"


def move_pages():
    status = (ctypes.c_int * 1)()
    page = (ctypes.c_ulong * 1)(ctypes.addressof(status) & ~(PAGE - 1))
    syscall(number(279, 239), 0, 1, page, None, status, 0)
    return f"page on node {status[0]}"


def mbind():
    area = mmap.mmap(-1, PAGE)
    syscall(number(237, 235), ctypes.addressof(ctypes.c_char.from_buffer(area)), PAGE, 0, None, 0, 0)
    return "a policy of memory"


def set_mempolicy():
    syscall(number(238, 237), 0, None, 0)
    return "a policy of memory"


def process_madvise():
    area = mmap.mmap(-1, PAGE)
    part = (ctypes.c_ulong * 2)(ctypes.addressof(ctypes.c_char.from_buffer(area)), PAGE)
    pidfd = syscall(number(434, 434), os.getpid(), 0)
    try:
        return f"{syscall(number(440, 440), pidfd, part, 1, 20, 0)} bytes advised"
    finally:
        os.close(pidfd)


def remap_file_pages():
    syscall(number(216, 234), 0, 0, 0, 0, 0)
    return "pages are mapped anew"


def pkey_alloc():
    return f"key {syscall(number(330, 289), 0, 0)}"


def mlock():
    syscall(number(149, 228), ctypes.addressof(ctypes.create_string_buffer(1)), 0)
    return "memory is locked"


def iopl():
    """The level it has."""
    syscall(number(172), 0)
    return "a level of ports"


def ioperm():
    syscall(number(173), 0x80, 1, 0)
    return "a port is given back"


def arch_prctl():
    """On x86: ask which base the thread has."""
    base = ctypes.c_ulong()
    syscall(number(158), 0x1003, ctypes.byref(base))
    return f"base {base.value:#x}"


def syslog():
    return f"{syscall(number(103, 116), 10, None, 0)} bytes of kernel log"


def adjtimex():
    block = ctypes.create_string_buffer(256)
    return f"clock state {syscall(number(159, 171), block)}"


def lookup_dcookie():
    return f"{syscall(number(212, 18), 0, ctypes.create_string_buffer(16), 16)} bytes"


def acct():
    syscall(number(163, 89), b"/nonexistent")
    return "accounting"


def swapon():
    syscall(number(167, 224), b"/nonexistent", 0)
    return "swap"


def ustat():
    syscall(number(136), 0, ctypes.create_string_buffer(64))
    return "a file system's numbers"


def statfs():
    checked(libc.statfs(b"/", ctypes.create_string_buffer(256)))
    return "a file system's numbers"


def sysv():
    """A segment that nobody else finds, taken away at once."""
    segment = syscall(number(29, 194), 0, PAGE, 0o600)
    syscall(number(31, 195), segment, 0, None)
    return "a segment"


def posix_queue():
    name = b"blindcast-attack"
    queue = syscall(number(240, 180), name, os.O_CREAT | os.O_RDWR, 0o600, None)
    os.close(queue)
    syscall(number(241, 181), name)
    return "a message queue"


def clone_files():
    """A table of descriptors of its own: unshare(2) without any namespace."""
    return in_child(lambda: syscall(number(272, 97), CLONE_FILES) + 1)


def ioprio_set():
    now = syscall(number(252, 31), 1, 0)
    syscall(number(251, 30), 1, 0, now)
    return f"priority {now}"


def sched_setattr():
    """To be what it is."""
    block = ctypes.create_string_buffer(56)
    syscall(number(315, 275), 0, block, 56, 0)
    syscall(number(314, 274), 0, block, 0)
    return "a policy of time"


def futex_waitv():
    syscall(number(449, 449), None, 0, 0, None, 0)
    return "it waits"


def listed_mounts():
    request = struct.pack("<IIQQQ", 24, 0, 0xFFFF_FFFF_FFFF_FFFF, 0, 0)
    return f"{syscall(number(458, 458), request, (ctypes.c_uint64 * 64)(), 64, 0)} mounts"


def cachestat():
    """Which pages of a file others have read."""
    fd = os.open(os.path.join(HERE, "toolbox.py"), os.O_RDONLY)
    block = (ctypes.c_uint64 * 5)()
    try:
        syscall(number(451, 451), fd, (ctypes.c_uint64 * 2)(0, 0), block, 0)
    finally:
        os.close(fd)
    return f"{block[0]} pages in memory"


def mincore():
    with open(os.path.join(HERE, "toolbox.py"), "rb") as file, contextlib.closing(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE)) as area:
        at = ctypes.addressof(ctypes.c_char.from_buffer(area))
        block = ctypes.create_string_buffer(8)
        syscall(number(27, 232), at, 1, block)
        return f"page in memory: {block.raw[0]}"


ACTS = (
    bpf_map,
    bpf_program,
    perf_software,
    perf_hardware,
    perf_breakpoint,
    userfaultfd,
    userfaultfd_user,
    userfaultfd_device,
    add_key_thread,
    add_key_process,
    request_key,
    keyctl,
    keyctl_join,
    kexec_load,
    kexec_file_load,
    init_module,
    finit_module,
    delete_module,
    personality_ask,
    personality_set,
    personality_libc,
    quotactl,
    quota_sync,
    quotactl_fd,
    traceme_libc,
    traceme_number,
    name_to_handle_at,
    modify_ldt_read,
    modify_ldt_write,
    vmsplice,
    splice,
    tee,
    sendfile,
    memfd_create,
    memfd_secret,
    pipe,
    epoll,
    eventfd,
    signalfd,
    timerfd,
    timer_create,
    inotify,
    fanotify,
    landlock,
    seccomp_ask,
    seccomp_listener,
    prctl_filter,
    prctl_name,
    prctl_dumpable,
    prctl_ptracer,
    kcmp,
    move_pages,
    mbind,
    set_mempolicy,
    process_madvise,
    remap_file_pages,
    pkey_alloc,
    mlock,
    iopl,
    ioperm,
    arch_prctl,
    syslog,
    adjtimex,
    lookup_dcookie,
    acct,
    swapon,
    ustat,
    statfs,
    sysv,
    posix_queue,
    clone_files,
    ioprio_set,
    sched_setattr,
    futex_waitv,
    listed_mounts,
    cachestat,
    mincore,
)


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for act in ACTS:
                attempt(act.__name__, act)
        return 0.5
