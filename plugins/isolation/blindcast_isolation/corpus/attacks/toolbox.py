"""What the attacks share: where to aim, system calls past the interpreter, and a line for each variant that was tried.

It is copied beside each attack. The lines help to read an outcome; what an attack got is looked for from outside (K-04).
"""

import ctypes
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "targets.json")) as file:
    TARGETS = json.load(file)

libc = ctypes.CDLL(None, use_errno=True)
_COLUMN = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
_WRITE = os.write
_SHOWN = 2_000


def number(x86_64, aarch64=None):
    """A system call's number here; None where the architecture has no such call."""
    return (x86_64, aarch64)[_COLUMN]


def syscall(call, *args):
    """Make a raw system call and return its result. Raises OSError."""
    if call is None:
        raise NotImplementedError("no such system call on this architecture")
    done = libc.syscall(ctypes.c_long(call), *(ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args))
    return checked(done)


def checked(result):
    """A C function's result, or the OSError that errno names where it is -1 or NULL."""
    if result in (-1, None, 0xFFFF_FFFF_FFFF_FFFF):
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result


def is_wanted(variant):
    """Whether this run is to try the variant: all of them, or the one that the targets name."""
    return TARGETS.get("variant") in (None, variant)


def report(variant, outcome, loot=""):
    """Write `variant | raised, nothing or got | loot` as one line of stdout."""
    text = loot.decode("latin-1") if isinstance(loot, (bytes, bytearray)) else str(loot)
    shown = text[:_SHOWN].replace("\\", "\\\\").replace("\n", "\\n").replace("|", "/")
    _WRITE(1, f"attack|{variant}|{outcome}|{shown}\n".encode("utf-8", "replace"))


def attempt(variant, act, *args):
    """Try one variant, if it is wanted, and report what came of it. An act that gains nothing returns None."""
    if not is_wanted(variant):
        return
    try:
        loot = act(*args)
    except BaseException as error:
        report(variant, "raised", f"{type(error).__name__}: {error}")
    else:
        report(variant, "nothing" if loot is None else "got", loot)
