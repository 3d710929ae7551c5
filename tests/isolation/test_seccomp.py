"""The system call filter: its rules in an interpreter of its own, and in force in throw-away children."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast_isolation.order import ENVIRONMENT
from blindcast_isolation.seccomp import ARCHITECTURES, Profile, calls, digest, install, program
from blindcast_isolation.workload import PARTS

ALLOW, KILL = "allow", "kill"
X32 = 0x4000_0000
THREAD = 0x3D0F00
WORD = st.integers(0, 2**32 - 1)
LONG = st.integers(0, 2**64 - 1)
ARGUMENTS = st.lists(LONG, min_size=6, max_size=6)
MACHINES = tuple(ARCHITECTURES)
PROFILES: tuple[Profile, ...] = ("predictor", "code")
FIRST_59 = set(
    (
        "read write close fstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn pread64 readv writev access "
        "select sched_yield mremap madvise nanosleep getpid exit uname getcwd readlink gettimeofday getrusage sysinfo times getuid getgid "
        "geteuid getegid getppid sigaltstack gettid futex sched_getaffinity getdents64 restart_syscall clock_gettime clock_getres "
        "clock_nanosleep exit_group newfstatat readlinkat ppoll pselect6 set_robust_list getcpu getrandom membarrier statx rseq"
    ).split()
)
CHECKED = {"openat", "ioctl", "fcntl", "clone", "clone3", "prlimit64"}
WRITING = {"mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "ftruncate", "fsync", "msync", "stat", "writev"}

machines = pytest.mark.parametrize("machine", MACHINES)
profiles = pytest.mark.parametrize("profile", PROFILES)
on_linux = pytest.mark.skipif(sys.platform != "linux" or os.uname().machine not in ARCHITECTURES, reason="no filter for this system")


def verdict(filter: bytes, architecture: int, number: int, arguments: Sequence[int] = (0,) * 6) -> str | int:
    """What the filter answers: an errno, `allow` or `kill`. Knows the instructions of linux/filter.h that the filter may use."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments)
    lines = list(struct.iter_unpack("=HBBI", filter))
    at = accumulator = 0
    while True:
        code, if_true, if_false, constant = lines[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, constant)
        elif code == 0x54:
            accumulator &= constant
        elif code in (0x15, 0x35):
            holds = accumulator == constant if code == 0x15 else accumulator >= constant
            at += if_true if holds else if_false
        elif code == 0x06:
            words: dict[int, str] = {0x7FFF_0000: ALLOW, 0x8000_0000: KILL}
            return words.get(constant & 0xFFFF_0000, int(constant & 0xFFFF))
        else:
            raise AssertionError(f"instruction {code:#x}")


def asked(name: str, *arguments: int, machine: str = "x86_64", profile: Profile = "predictor") -> str | int:
    """What a call of the list is answered."""
    (call,) = [call for call in calls(profile) if call.name == name]
    return verdict(program(profile, machine), ARCHITECTURES[machine], call.numbers[machine], (*arguments, *[0] * (6 - len(arguments))))


def test_the_list_has_only_shrunk() -> None:
    """I-14."""
    assert {call.name for call in calls()} <= FIRST_59 | CHECKED | {"faccessat"}
    assert {call.name for call in calls("code")} <= FIRST_59 | CHECKED | {"faccessat"} | WRITING


def test_aarch64_lacks_what_it_has_no_number_for() -> None:
    """I-15."""
    lacking = {call.name for call in calls("code") if "aarch64" not in call.numbers}
    assert lacking <= {"poll", "select", "access", "readlink", "mkdir", "rmdir", "unlink", "rename", "stat"}
    assert "aarch64" in {call.name: call for call in calls()}["faccessat"].numbers


@profiles
@machines
def test_no_number_stands_twice(machine: str, profile: Profile) -> None:
    numbers = [call.numbers[machine] for call in calls(profile) if machine in call.numbers]
    assert len(numbers) == len(set(numbers))


@profiles
@machines
@settings(deadline=None)
@given(number=WORD, arguments=ARGUMENTS)
def test_a_call_that_is_not_on_the_list_is_refused(machine: str, profile: Profile, number: int, arguments: list[int]) -> None:
    """I-14: the next system call is unknown."""
    listed = {call.numbers.get(machine) for call in calls(profile)}
    expected = KILL if machine == "x86_64" and number >= X32 else errno.EPERM
    if number not in listed:
        assert verdict(program(profile, machine), ARCHITECTURES[machine], number, arguments) == expected


@profiles
@machines
def test_every_number_up_to_a_thousand_is_answered_by_the_list(machine: str, profile: Profile) -> None:
    """I-14."""
    plain = {call.numbers[machine] for call in calls(profile) if machine in call.numbers and not call.errno}
    judged = {call.numbers[machine] for call in calls(profile) if machine in call.numbers and call.errno}
    for number in set(range(1_000)) - judged:
        expected = ALLOW if number in plain else errno.EPERM
        assert verdict(program(profile, machine), ARCHITECTURES[machine], number) == expected


@profiles
@settings(deadline=None)
@given(number=st.integers(0, 1_000), arguments=ARGUMENTS)
def test_x32_numbers_kill(profile: Profile, number: int, arguments: list[int]) -> None:
    """I-14."""
    assert verdict(program(profile, "x86_64"), ARCHITECTURES["x86_64"], X32 | number, arguments) == KILL


@profiles
@machines
@settings(deadline=None)
@given(architecture=WORD, number=WORD, arguments=ARGUMENTS)
def test_another_architecture_kills(machine: str, profile: Profile, architecture: int, number: int, arguments: list[int]) -> None:
    """I-14: also the 32-bit calls of `int 0x80`."""
    if architecture != ARCHITECTURES[machine]:
        assert verdict(program(profile, machine), architecture, number, arguments) == KILL


@machines
def test_the_32_bit_sister_kills(machine: str) -> None:
    """I-14: the calls of i386 and of 32-bit Arm."""
    assert verdict(program("predictor", machine), {"x86_64": 0x4000_0003, "aarch64": 0x4000_0028}[machine], 3) == KILL


@machines
@settings(deadline=None)
@given(flags=LONG, junk=LONG)
def test_a_predictor_opens_for_reading_only(machine: str, flags: int, junk: int) -> None:
    """I-14: the kernel cuts the flags to 32 bits, so the upper half says nothing."""
    writes = flags & (os.O_WRONLY | os.O_RDWR | 0o100 | 0o1000 | 0o20000000)
    assert asked("openat", junk, junk, flags, junk, machine=machine) == (errno.EACCES if writes else ALLOW)


@machines
@settings(deadline=None)
@given(flags=LONG | st.sampled_from([mode | more for mode in range(4) for more in (0, 0o100, 0o1000, 0o1100)]), junk=LONG)
def test_code_opens_for_writing_but_empties_nothing_that_it_may_only_read(machine: str, flags: int, junk: int) -> None:
    """I-87: Landlock before its third version lets O_TRUNC pass with O_RDONLY; a file without a name (O_TMPFILE) is counted by nobody."""
    mode, empties, is_nameless = flags & 3, flags & 0o1000, flags & 0o20000000
    refused = is_nameless or mode == 3 or (empties and mode == 0)
    assert asked("openat", junk, junk, flags, junk, machine=machine, profile="code") == (errno.EACCES if refused else ALLOW)


@profiles
@machines
@settings(deadline=None)
@given(operation=WORD, junk=LONG)
def test_a_thread_waits_and_wakes_within_its_own_process_only(machine: str, profile: Profile, operation: int, junk: int) -> None:
    """I-14: without FUTEX_PRIVATE_FLAG those who map one file wait at one place, whatever namespaces they are in."""
    answer = ALLOW if operation & 0x80 else errno.EAGAIN
    assert asked("futex", junk, operation, junk, machine=machine, profile=profile) == answer


@pytest.mark.parametrize("flag", [1, 2, 3, 0o100, 0o1000, 0o20000000, 0o20200000, 0o102, 1 | 1 << 32])
def test_each_way_to_write_is_refused(flag: int) -> None:
    """I-14: O_WRONLY, O_RDWR, both, O_CREAT, O_TRUNC, O_TMPFILE, and mixtures."""
    assert asked("openat", 0, 0, flag | os.O_CLOEXEC) == errno.EACCES


@machines
def test_a_folder_can_be_listed(machine: str) -> None:
    """O_DIRECTORY is one of the two bits of O_TMPFILE, and honest."""
    folder = {"x86_64": 0o200000, "aarch64": 0o40000}[machine]
    assert asked("openat", 0, 0, folder | os.O_CLOEXEC, machine=machine) == ALLOW


@machines
@settings(deadline=None)
@given(command=WORD | st.sampled_from([0x5401, 0x5451, 0, 1, 2, 3, 1030]), junk=LONG)
def test_files_are_asked_only_what_is_harmless(machine: str, command: int, junk: int) -> None:
    """I-14: ioctl and fcntl."""
    assert asked("ioctl", junk, command, junk, machine=machine) == (ALLOW if command in (0x5401, 0x5451) else errno.ENOTTY)
    assert asked("fcntl", junk, command, junk, machine=machine) == (ALLOW if command in (0, 1, 2, 3, 1030) else errno.EPERM)


@machines
@settings(deadline=None)
@given(flags=LONG | st.integers(0, 31).map(lambda bit: THREAD ^ 1 << bit), junk=LONG)
def test_clone_makes_threads_only(machine: str, flags: int, junk: int) -> None:
    """I-14: no process, and no namespace beside a thread."""
    assert asked("clone", flags, junk, machine=machine) == (ALLOW if flags == THREAD else errno.EPERM)


@machines
@settings(deadline=None)
@given(arguments=ARGUMENTS)
def test_clone3_seems_not_to_exist(machine: str, arguments: list[int]) -> None:
    """I-14: so the C library takes clone."""
    assert asked("clone3", *arguments, machine=machine) == errno.ENOSYS


@machines
@settings(deadline=None)
@given(pid=st.just(0) | LONG, limit=st.just(0) | st.integers(0, 63).map(lambda bit: 1 << bit) | LONG, junk=LONG)
def test_limits_are_read_of_the_process_itself_only(machine: str, pid: int, limit: int, junk: int) -> None:
    """I-14: both halves of the pointer count; a pid has one."""
    own_and_unchanged = pid & 0xFFFF_FFFF == 0 and limit == 0
    assert asked("prlimit64", pid, junk, limit, junk, machine=machine) == (ALLOW if own_and_unchanged else errno.EPERM)


def test_the_profile_for_code_adds_the_names_of_files() -> None:
    """I-87."""
    added = {call.name for call in calls("code")} - {call.name for call in calls()}
    assert {"mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "ftruncate", "fsync"} <= added <= WRITING


@profiles
@machines
def test_every_way_through_the_program_ends(machine: str, profile: Profile) -> None:
    """Jumps lead forwards and stay inside; the last instruction returns."""
    lines = list(struct.iter_unpack("=HBBI", program(profile, machine)))
    assert len(lines) < 4_096
    for at, (code, if_true, if_false, _) in enumerate(lines):
        assert code == 0x06 or at + 1 + max(if_true, if_false) < len(lines)


def test_digests_tell_programs_apart() -> None:
    """I-15."""
    digests = {digest(program(profile, machine)) for profile in PROFILES for machine in MACHINES}
    assert len(digests) == 4
    assert all(len(text) == 64 for text in digests)


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(OSError, match="riscv64") as raised:
        program("predictor", "riscv64")
    assert raised.value.errno == errno.ENOTSUP


HEAD = """\
import ctypes, errno, os, signal, socket, sys, threading
sys.path += sys.argv[1:]
from blindcast_isolation import linux, seccomp
import blindcast_isolation.workload as workload
libc = ctypes.CDLL(None, use_errno=True)
machine = os.uname().machine
numbers = {
    "socket": (41, 198), "socketpair": (53, 199), "vfork": (58, None), "fork": (57, None), "execve": (59, 221), "execveat": (322, 281),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "pipe2": (293, 59), "kill": (62, 129), "tgkill": (234, 131),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "ptrace": (101, 117), "process_vm_readv": (310, 270), "unshare": (272, 97),
    "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "open_tree": (428, 428), "pivot_root": (155, 41), "keyctl": (250, 219),
    "add_key": (248, 217), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "io_uring_setup": (425, 425), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "setpriority": (141, 140),
    "sched_setaffinity": (203, 122), "setrlimit": (160, 164), "prctl": (157, 167), "seccomp": (317, 277), "openat2": (437, 437),
    "open_by_handle_at": (304, 265), "inotify_init1": (294, 26), "eventfd2": (290, 19), "epoll_create1": (291, 20), "splice": (275, 76),
    "fchmod": (91, 52), "fchmodat": (268, 53), "symlinkat": (266, 36), "linkat": (265, 37), "mknodat": (259, 33), "truncate": (76, 45),
    "setresuid": (117, 147), "chroot": (161, 51), "init_module": (175, 105), "kexec_load": (246, 104), "reboot": (169, 142),
    "syslog": (103, 116), "quotactl": (179, 60), "name_to_handle_at": (303, 264), "ioprio_set": (251, 30), "timer_create": (222, 107),
    "setitimer": (38, 103), "process_madvise": (440, 440), "kcmp": (312, 272), "landlock_create_ruleset": (444, 444),
}
def call(name, *arguments):
    number = numbers[name][machine == "aarch64"]
    if number is None:
        return None
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return 0 if result >= 0 else ctypes.get_errno()
def refused(act):
    try:
        act()
    except OSError as error:
        return error.errno
    return 0
linux.forbid_new_privileges()
seccomp.install(seccomp.program(PROFILE))
"""


def locked(code: str, *, profile: Profile = "predictor", cwd: str = "/") -> subprocess.CompletedProcess[str]:
    """A child that puts the filter in force and runs `code`."""
    text = HEAD.replace("PROFILE", repr(profile)) + code
    line = [sys.executable, "-I", "-B", "-c", text, *sys.path]
    return subprocess.run(line, env=ENVIRONMENT, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def assert_held(code: str, *, profile: Profile = "predictor", cwd: str = "/") -> None:
    ended = locked(code, profile=profile, cwd=cwd)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr


@on_linux
@profiles
def test_no_socket_of_any_family(profile: Profile) -> None:
    """I-14: INET, INET6, UNIX, NETLINK, VSOCK, ALG and the others."""
    assert_held("assert {call('socket', family, kind, 0) for family in range(46) for kind in (1, 2, 3, 5)} == {1}", profile=profile)


@on_linux
@profiles
def test_nothing_that_reaches_beyond_the_process(profile: Profile) -> None:
    """I-14."""
    assert_held(
        "let = {name: got for name in numbers if (got := call(name, 0, 0, 0, 0, 0)) not in (1, None)}\nassert not let, let", profile=profile
    )


@on_linux
@profiles
def test_no_process_and_no_signal(profile: Profile) -> None:
    """I-14: through the C library and Python, too."""
    assert_held(
        """
assert refused(os.fork) == refused(os.pipe) == errno.EPERM
assert refused(lambda: os.posix_spawn(sys.executable, [sys.executable], {})) == errno.EPERM
assert refused(lambda: os.execv(sys.executable, [sys.executable])) == errno.EPERM
assert refused(lambda: os.kill(os.getpid(), 0)) == refused(lambda: os.kill(1, 0)) == errno.EPERM
assert refused(lambda: os.setpriority(0, 0, 0)) == refused(lambda: os.sched_setaffinity(0, {0})) == errno.EPERM
import resource
assert refused(lambda: resource.prlimit(1, resource.RLIMIT_AS)) == errno.EPERM
assert refused(lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))) == errno.EPERM
assert resource.getrlimit(resource.RLIMIT_CORE)
""",
        profile=profile,
    )


@on_linux
def test_a_predictor_reads_and_does_not_write(tmp_path: os.PathLike[str]) -> None:
    """I-14."""
    assert_held(
        """
assert open(os.__file__).read(1)
assert os.listdir("/")
ways = [os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_WRONLY | os.O_CREAT, os.O_TRUNC, os.O_TMPFILE | os.O_RDWR]
assert {refused(lambda: os.open("made", way, 0o600)) for way in ways} == {errno.EACCES}
acts = [lambda: os.mkdir("made"), lambda: os.unlink("made"), lambda: os.rmdir("made"), lambda: os.rename("made", "moved")]
assert {refused(act) for act in acts} == {errno.EPERM}
""",
        cwd=str(tmp_path),
    )


@on_linux
def test_code_writes(tmp_path: os.PathLike[str]) -> None:
    """I-87."""
    assert_held("workload.run(('workspace',))", profile="code", cwd=str(tmp_path))


@on_linux
def test_x32_numbers_and_32_bit_calls_end_the_process() -> None:
    """I-14."""
    if os.uname().machine != "x86_64":
        pytest.skip("x32 numbers are x86_64's")
    assert locked("libc.syscall(ctypes.c_long(0x40000000 | 39))").returncode == -31  # SIGSYS
    compat = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret: getpid of i386
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
    assert locked(compat).returncode in (-31, -11)  # SIGSYS; SIGSEGV where the kernel has no 32-bit calls


@on_linux
def test_a_thread_that_was_there_is_held_too() -> None:
    """The filter is for the whole process."""
    ended = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            """
import os, sys, threading
sys.path += sys.argv[1:]
from blindcast_isolation import linux, seccomp
go, said = threading.Event(), []
def late():
    go.wait(30)
    try:
        os.pipe()
    except PermissionError:
        said.append(True)
thread = threading.Thread(target=late)
thread.start()
linux.forbid_new_privileges()
seccomp.install(seccomp.program())
go.set()
thread.join()
assert said
""",
            *sys.path,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@on_linux
def test_a_second_filter_cannot_loosen_the_first() -> None:
    """I-14: the call itself is not on the list."""
    assert_held("assert refused(lambda: seccomp.install(seccomp.program('code'))) == errno.EPERM")


@on_linux
def test_a_damaged_program_is_refused() -> None:
    with pytest.raises(OSError, match="seccomp"):
        install(b"")


@on_linux
@pytest.mark.parametrize("part", [name for name in PARTS if name not in ("sleep", "workspace")])
def test_an_honest_workload_runs_and_does_not_warn(part: str) -> None:
    """I-14, I-15: lazy imports and threads included, `n_jobs=-1` and 8."""
    ended = locked(f"import warnings\nwarnings.simplefilter('always')\nworkload.run(({part!r},))")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{part}\n", "")
