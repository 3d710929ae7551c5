"""Start a process in every way that a library has, and leave one behind that waits.

Against it: seccomp refuses fork, vfork and exec; clone makes threads only (I-14). An honest author who asks for `n_jobs=-1` meets the
same refusal, so its text must say what to do instead. A worker that outlives its submission is how judges were made to mine coins.
"""

import contextlib
import ctypes
import os
import sys
import time

from toolbox import TARGETS, attempt, checked, libc, number

held = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock over a fork
MARKER = TARGETS["marker"]
PROGRAM = "import os; os.close(os.open({path!r}, os.O_CREAT | os.O_WRONLY, 0o600))"
SIGCHLD = 17
CLONE_VM, CLONE_VFORK, CLONE_PARENT = 0x100, 0x4000, 0x8000
WAIT_S = 2.0
OWN_PID = os.getpid()


def path_of(variant):
    """The file that shows, outside, that a process of this variant ran."""
    return os.path.join(MARKER, f"blindcast-attack-{variant}")


def mark(variant):
    """Only in another process than this one, and past the interpreter, for a fork keeps its audit hook."""
    if os.getpid() == OWN_PID:
        return
    fd = held.open(path_of(variant).encode(), os.O_CREAT | os.O_WRONLY, 0o600)
    if fd >= 0:
        held.close(fd)


def argv_of(variant):
    return [sys.executable, "-I", "-S", "-c", PROGRAM.format(path=path_of(variant))]


def line_of(variant):
    return f": > {path_of(variant)}"


def ended(pid):
    """Wait for a child of this one; one that hangs is ended."""
    deadline = time.monotonic() + WAIT_S
    while (done := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            libc.kill(pid, 9)
            done = os.waitpid(pid, 0)
        time.sleep(0.002)
    return f"process {pid} ended with {done[1]}"


def checked_pid(variant, pid):
    if pid == 0:
        with contextlib.suppress(BaseException):
            mark(variant)
        os._exit(0)
    return ended(pid)


def fork_python(variant):
    return checked_pid(variant, os.fork())


def fork_libc(variant):
    return checked_pid(variant, checked(held.fork()))


def fork_number(variant):
    if number(57) is None:
        raise NotImplementedError("no fork call on this architecture")
    return checked_pid(variant, checked(held.syscall(ctypes.c_long(57))))


def clone_number(variant):
    """clone(2) as the C library's fork makes it."""
    return checked_pid(variant, checked(held.syscall(ctypes.c_long(number(56, 220)), ctypes.c_long(SIGCHLD), *[ctypes.c_long(0)] * 4)))


def clone_quiet_number(variant):
    """A child that tells nobody when it ends: no exit signal."""
    pid = checked(held.syscall(ctypes.c_long(number(56, 220)), *[ctypes.c_long(0)] * 5))
    if pid == 0:
        with contextlib.suppress(BaseException):
            mark(variant)
        os._exit(0)
    deadline = time.monotonic() + WAIT_S
    while held.waitpid(pid, None, 0x8000_0001) == 0 and time.monotonic() < deadline:  # __WCLONE | WNOHANG
        time.sleep(0.002)
    return f"process {pid}"


def clone3_number(variant):
    arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, SIGCHLD)
    return checked_pid(variant, checked(held.syscall(ctypes.c_long(number(435, 435)), arguments, ctypes.c_long(88))))


def vfork_clone(variant):
    """The C library's clone with shared memory, as posix_spawn does it: it runs one C function and ends."""
    stack, path = ctypes.create_string_buffer(65_536), path_of(variant).encode()
    top = (ctypes.addressof(stack) + 65_536 - 64) & ~15
    function = ctypes.cast(held.creat, ctypes.c_void_p)  # its mode is whatever stands in the register
    pid = checked(held.clone(function, ctypes.c_void_p(top), CLONE_VFORK | SIGCHLD, ctypes.c_char_p(path)))
    return ended(pid)


def posix_spawn_python(variant):
    argv = argv_of(variant)
    return ended(os.posix_spawn(argv[0], argv, {}))


def posix_spawnp_python(variant):
    argv = argv_of(variant)
    return ended(os.posix_spawnp(argv[0], argv, {}))


def posix_spawn_libc(variant):
    argv, pid = argv_of(variant), ctypes.c_int()
    texts = (ctypes.c_char_p * (len(argv) + 1))(*map(os.fsencode, argv), None)
    errno = libc.posix_spawn(ctypes.byref(pid), argv[0].encode(), None, None, texts, (ctypes.c_char_p * 1)(None))
    if errno:
        raise OSError(errno, os.strerror(errno))
    return ended(pid.value)


def subprocess_run(variant):
    import subprocess

    return str(subprocess.run(argv_of(variant), timeout=WAIT_S))


def subprocess_shell(variant):
    import subprocess

    return str(subprocess.run(line_of(variant), shell=True, timeout=WAIT_S))


def subprocess_vfork(variant):
    """With the switch that takes vfork away."""
    import subprocess

    subprocess._USE_VFORK = subprocess._USE_POSIX_SPAWN = False
    try:
        return str(subprocess.Popen(argv_of(variant), start_new_session=True).wait(WAIT_S))
    finally:
        subprocess._USE_VFORK = subprocess._USE_POSIX_SPAWN = True


def fork_exec(variant):
    """What subprocess stands on: it raises no audit event of its own."""
    import _posixsubprocess

    texts = [os.fsencode(text) for text in argv_of(variant)]
    read, write = os.pipe()
    head = (texts, texts[:1], False, (write,), None, [], -1, -1, -1, -1, -1, -1, read, write, True, False, -1)
    try:
        try:
            return ended(_posixsubprocess.fork_exec(*head, None, None, None, -1, None, False))
        except TypeError:  # from 3.14 on
            return ended(_posixsubprocess.fork_exec(*head, None, None, None, -1, None))
    finally:
        os.close(read)
        os.close(write)


def os_system(variant):
    done = os.system(line_of(variant))
    if done == -1:
        raise OSError("no shell was started")
    return f"the shell ended with {done}"


def system_libc(variant):
    return f"the shell ended with {checked(libc.system(line_of(variant).encode()))}"


def os_popen(variant):
    with os.popen(line_of(variant)) as pipe:
        return f"the shell said {pipe.read()!r}"


def popen_libc(variant):
    libc.popen.restype = ctypes.c_void_p
    pipe = ctypes.c_void_p(checked(libc.popen(line_of(variant).encode(), b"r")))
    return f"the shell ended with {libc.pclose(pipe)}"


def wordexp_libc(variant):
    """The C library's word expansion starts a shell for what stands in $( )."""
    block = ctypes.create_string_buffer(64)
    error = libc.wordexp(f"$({line_of(variant)})".encode(), block, 0)
    if error:
        raise OSError(f"wordexp: {error}")
    return "the words were expanded"


def os_spawn(variant):
    argv = argv_of(variant)
    return f"ended with {os.spawnv(os.P_WAIT, argv[0], argv)}"


def forkpty(variant):
    pid, master = os.forkpty()
    try:
        return checked_pid(variant, pid)
    finally:
        os.close(master)


def pty_spawn(variant):
    """With both of its ends answered for: it must not read what is not its own."""
    import pty

    return f"ended with {pty.spawn(argv_of(variant), lambda fd: os.read(fd, 100), lambda fd: b'')}"


def forkpty_libc(variant):
    master = ctypes.c_int()
    pid = checked(held.forkpty(ctypes.byref(master), None, None, None))
    try:
        return checked_pid(variant, pid)
    finally:
        os.close(master.value)


def processes(variant, method):
    """A multiprocessing start method. Its target is a function that any interpreter finds."""
    import multiprocessing

    context = multiprocessing.get_context(method)
    target = mark if method == "fork" else os.open
    args = (variant,) if method == "fork" else (path_of(variant), os.O_CREAT | os.O_WRONLY)
    main = sys.modules["__main__"]
    kept = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        process = context.Process(target=target, args=args)
        process.start()
        process.join(WAIT_S)
        if process.is_alive():
            process.kill()
            process.join()
        return f"process {process.pid} ended with {process.exitcode}"
    finally:
        vars(main).update(kept)
        _stop_servants()


def _stop_servants():
    """End the processes that multiprocessing keeps for itself: of those that were started nothing is to outlive the act."""
    from multiprocessing import forkserver, resource_tracker

    for servant in (forkserver._forkserver, resource_tracker._resource_tracker):
        with contextlib.suppress(BaseException):
            servant._stop()


def mp_fork(variant):
    return processes(variant, "fork")


def mp_spawn(variant):
    return processes(variant, "spawn")


def mp_forkserver(variant):
    return processes(variant, "forkserver")


def mp_pool(variant):
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply_async(mark, (variant,)).get(WAIT_S)
    return "the pool did it"


def futures(variant):
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(mark, variant).result(WAIT_S)
    return "the pool did it"


def joblib_module():
    """An allowed library's own copy: it is not on the list of what may be imported by name."""
    import sklearn.utils.parallel  # noqa: F401

    return sys.modules["joblib"]


def joblib_loky(variant):
    """loky, whatever joblib has made of its switch."""
    rooms = vars(joblib_module())
    exec("import joblib.externals.loky, joblib.externals.loky.backend.resource_tracker", rooms)  # as if the library had asked
    loky = sys.modules["joblib.externals.loky"]
    pool = loky.get_reusable_executor(max_workers=1, timeout=1)
    try:
        pool.submit(os.open, path_of(variant), os.O_CREAT | os.O_WRONLY).result(10)
    finally:
        pool.shutdown(wait=False, kill_workers=True)
        _stop_servants()
        with contextlib.suppress(BaseException):
            sys.modules["joblib.externals.loky.backend.resource_tracker"]._resource_tracker._stop()
    return "the pool did it"


def joblib_parallel(variant):
    """What an honest author writes."""
    joblib = joblib_module()
    joblib.Parallel(n_jobs=2, backend="multiprocessing")(joblib.delayed(mark)(variant) for _ in range(2))
    if not os.path.exists(path_of(variant)):
        return None
    return "two workers did it"


def by_asyncio(variant):
    import asyncio

    async def start():
        process = await asyncio.create_subprocess_exec(*argv_of(variant))
        return await asyncio.wait_for(process.wait(), WAIT_S)

    return f"ended with {asyncio.run(start())}"


def waiting(variant, depth):
    """A process that has left its session and its parent, and acts when the run is over: it ends by itself after a second."""
    pid = checked(held.fork())
    if pid:
        return ended(pid)
    with contextlib.suppress(BaseException):
        os.setsid()
        if depth == 1 or held.fork() == 0:
            if depth == 1 and held.fork() != 0:
                os._exit(0)
            deadline, first = time.monotonic() + 1.0, os.getppid()
            while time.monotonic() < deadline and os.getppid() == first:
                time.sleep(0.01)
            time.sleep(max(0.0, deadline - time.monotonic()))
            mark(variant)
    os._exit(0)


def daemon(variant):
    """Waits for the next run of its uid."""
    return waiting(variant, 2)


ACTS = (
    fork_python,
    fork_libc,
    fork_number,
    clone_number,
    clone_quiet_number,
    clone3_number,
    vfork_clone,
    posix_spawn_python,
    posix_spawnp_python,
    posix_spawn_libc,
    subprocess_run,
    subprocess_shell,
    subprocess_vfork,
    fork_exec,
    os_system,
    system_libc,
    os_popen,
    popen_libc,
    wordexp_libc,
    os_spawn,
    forkpty,
    forkpty_libc,
    pty_spawn,
    mp_fork,
    mp_spawn,
    mp_forkserver,
    mp_pool,
    futures,
    joblib_loky,
    joblib_parallel,
    by_asyncio,
    daemon,
)


class Predictor:
    tries = True  # once a run: what it prints has a cap

    def predict(self, view):
        if self.tries:
            self.tries = False
            for act in ACTS:
                attempt(act.__name__, act, act.__name__)
        return 0.5
