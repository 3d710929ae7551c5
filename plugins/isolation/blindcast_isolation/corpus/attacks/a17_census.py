"""List everything it can know of its surroundings, and whatever of other processes it can see.

Against it: nothing is refused that is in the documented set; that set is constant: the same on two hosts but for kernel and libraries
(with mount namespaces), and nothing of the server is in `sys.modules` (I-11, I-12, I-20, I-30). Variants from `host_` on may differ.
"""

import ctypes
import json
import os
import resource
import sys
import threading
import time

from toolbox import TARGETS, attempt, checked, libc

SHOWN = 900
OURS = ("blindcast", "blindcast_isolation", "pluggy", "sqlalchemy", "keyring", "httpx", "mcp", "inspect_ai", "verifiers")

libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.opendir.argtypes = (ctypes.c_char_p,)
libc.readdir.argtypes = libc.closedir.argtypes = (ctypes.c_void_p,)
_NAME_AT = 19  # of a directory entry, 64-bit


def names(folder):
    """The names in a folder, past the interpreter."""
    stream, found = checked(libc.opendir(folder.encode())), []
    while entry := libc.readdir(stream):
        found.append(ctypes.string_at(entry + _NAME_AT).decode("utf-8", "replace"))
    libc.closedir(stream)
    return sorted(found)


def content(path, most=65_536):
    fd, block = checked(libc.open(path.encode(), os.O_RDONLY)), ctypes.create_string_buffer(most)
    try:
        got = checked(libc.read(fd, block, most))
        return block.raw[:got].decode("utf-8", "replace")
    finally:
        libc.close(fd)


def environment():
    return sorted(os.environ.items())


def arguments():
    return [sys.argv, sys.orig_argv]


def search_path():
    return sys.path


def interpreter():
    return [str(sys.flags), sys.implementation.name, sys.executable, sys.prefix, sys.base_prefix, sys.dont_write_bytecode]


def main_module():
    main = sys.modules["__main__"]
    return [getattr(main, "__file__", None), sorted(name for name in vars(main) if not name.startswith("__"))]


def folder():
    return os.getcwd()


def identity():
    """Nobody's name is in it but the slot's number."""
    return [os.getuid() == os.geteuid(), os.getgid() == os.getegid(), os.getuid() != 0, os.getpgrp() == os.getsid(0) == os.getpid()]


def modules():
    """What of the server's is loaded: nothing."""
    return sorted(name for name in sys.modules if name.partition(".")[0] in OURS)


def limits():
    kinds = ("AS", "CORE", "CPU", "FSIZE", "MEMLOCK", "MSGQUEUE", "NOFILE", "STACK")
    return {kind: resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in kinds}


def threads():
    return [len(threading.enumerate()), threading.main_thread().name]


def frames():
    """Which functions stand above this one."""
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_code.co_name}")
        frame = frame.f_back
    return found


def host_name():
    import socket

    return socket.gethostname()


def host_name_libc():
    block = ctypes.create_string_buffer(400)
    checked(libc.uname(block))
    return [block.raw[i * 65 : i * 65 + 65].split(b"\0")[0].decode() for i in range(6)]


def host_files():
    return names("/")


def host_system():
    return names("/sys")


def host_devices():
    return names("/dev")


def host_mounts():
    return content("/proc/self/mountinfo")


def host_boot_id():
    return content("/proc/sys/kernel/random/boot_id")


def host_machine_id():
    return content("/etc/machine-id")


def host_users():
    return content("/etc/passwd")


def host_resolver():
    return content("/etc/hosts") + content("/etc/resolv.conf")


def host_connections():
    return content("/proc/net/tcp") + content("/proc/net/unix")


def host_interfaces():
    import socket

    return socket.if_nameindex()


def host_cgroup():
    return content("/proc/self/cgroup")


def host_kernel():
    return content("/proc/cmdline") + content("/proc/version")


def host_cpus():
    return [os.cpu_count(), len(os.sched_getaffinity(0))]


def host_clock():
    return [time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.tzname]


def host_memory():
    block = ctypes.create_string_buffer(256)
    checked(libc.sysinfo(block))
    return [int.from_bytes(block.raw[i : i + 8], "little") for i in range(0, 112, 8)]


def host_load():
    return os.getloadavg()


def host_pids():
    return [os.getpid(), os.getppid(), os.getuid(), os.getgid(), os.getgroups()]


def host_processes():
    """Who else runs: command lines and environments, the server's first."""
    found = []
    server = str(TARGETS["server_pid"])
    for pid in sorted((name for name in names("/proc") if name.isdigit()), key=lambda name: name != server):
        for what in ("cmdline", "environ"):
            try:
                text = content(f"/proc/{pid}/{what}").split("\0")
            except OSError as error:
                text = [str(error)]
            secrets = [entry for entry in text if entry.startswith(TARGETS["token_name"])]
            found.append(f"{pid} {' '.join(secrets or text)[:300]}")
    return found


def host_home():
    return names(TARGETS["home"])


KNOWN = (environment, arguments, search_path, interpreter, main_module, folder, identity, modules, limits, threads, frames)
HOST = (
    host_name,
    host_name_libc,
    host_files,
    host_system,
    host_devices,
    host_mounts,
    host_boot_id,
    host_machine_id,
    host_users,
    host_resolver,
    host_connections,
    host_interfaces,
    host_cgroup,
    host_kernel,
    host_cpus,
    host_clock,
    host_memory,
    host_load,
    host_pids,
    host_processes,
    host_home,
)


class Predictor:
    tries = True  # once a run: what it prints has a cap

    def predict(self, view):
        if self.tries:
            self.tries = False
            for act in (*KNOWN, *HOST):
                attempt(act.__name__, lambda act=act: json.dumps(act())[:SHOWN])
        return 0.5
