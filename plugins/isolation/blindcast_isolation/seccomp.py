"""seccomp: the system calls a child may make, as a program of the kernel's classic packet filter (I-14, I-15, I-87).

The list is data, `syscalls.toml`. Whatever is not on it gets EPERM; another architecture's call (`int 0x80` too) and x32
numbers end the process. `program` is assembled before any fork; `install` afterwards makes a single call.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import struct
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from attrs import frozen

__all__ = ["ARCHITECTURES", "Call", "Condition", "Profile", "assemble", "calls", "digest", "install", "program"]

Profile = Literal["predictor", "code"]

ARCHITECTURES: Final[Mapping[str, int]] = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}  # AUDIT_ARCH_*
_X32: Final = 0x4000_0000  # from here on the numbers of x86_64 are those of its 32-bit pointers
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets into struct seccomp_data
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06  # BPF_LD|W|ABS, BPF_ALU|AND|K, BPF_RET|K
_IF_EQUAL, _IF_AT_LEAST = 0x15, 0x35  # BPF_JMP|JEQ|K, BPF_JMP|JGE|K
_WORD: Final = 0xFFFF_FFFF
_SYS_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _TSYNC = 1, 1  # TSYNC: threads that are there already, too

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant
_INSTRUCTION: Final = struct.Struct("=HBBI")


class _Program(ctypes.Structure):
    _fields_ = (("instructions", ctypes.c_ushort), ("first", ctypes.c_void_p))


_syscall = ctypes.CDLL(None, use_errno=True).syscall


@frozen
class Condition:
    """Holds when one 32-bit half of an argument, cut to `mask`, is one of `values`. `offset` is into struct seccomp_data."""

    offset: int
    mask: int
    values: tuple[int, ...]


@frozen
class Call:
    """One entry of the list. A call whose `conditions` do not all hold gets `errno`; with an `errno` and no conditions, any does."""

    name: str
    numbers: Mapping[str, int]  # by machine
    conditions: tuple[Condition, ...]
    errno: int  # 0: allowed, whatever its arguments
    why: str
    unmeasured: str  # why it stays although `scripts/syscalls` shows no need; empty where it does


@cache
def calls(profile: Profile = "predictor") -> tuple[Call, ...]:
    """The entries of a profile, in the order in which the filter asks for them."""
    table = tomllib.loads(files("blindcast_isolation").joinpath("syscalls.toml").read_text(encoding="utf-8"))
    found = {row["name"]: _call(row) for row in table["predictor"]}
    if profile == "code":
        found |= {row["name"]: _call(row) for row in table["code"]}
    return tuple(found.values())


def _call(row: Mapping[str, object]) -> Call:
    numbers = {machine: number for machine in ARCHITECTURES if isinstance(number := row.get(machine), int)}
    only = row.get("only", [])
    assert isinstance(only, list)
    conditions = tuple(condition for rule in only for condition in _conditions(**rule))
    refusal = getattr(errno, str(row["errno"])) if "errno" in row else 0
    return Call(str(row["name"]), numbers, conditions, refusal, str(row["why"]), str(row.get("unmeasured", "")))


def _conditions(*, arg: int, **rule: object) -> Iterable[Condition]:
    """The kernel cuts an `int` or `unsigned` argument to its low half, and so does the filter; `wide` ones are judged whole."""
    values, mask = rule["is"], rule.get("mask", _WORD)
    assert isinstance(values, list)
    assert isinstance(mask, int)
    low = _ARGUMENTS + 8 * arg
    yield Condition(low, mask, tuple(value & _WORD for value in values))
    if rule.get("wide"):
        (value,) = values
        yield Condition(low + 4, _WORD, (value >> 32,))


def program(profile: Profile = "predictor", machine: str | None = None) -> bytes:
    """The assembled filter: an array of `struct sock_filter`. `machine` as `os.uname` has it, this one's by default.

    Raises OSError where no list is known for the machine.
    """
    machine = machine or os.uname().machine
    if machine not in ARCHITECTURES or sys.maxsize < _WORD:
        raise OSError(errno.ENOTSUP, f"no list of system calls for {machine}; there is one for {' and '.join(ARCHITECTURES)}, 64 bits")
    return assemble(calls(profile), machine)


def digest(program: bytes) -> str:
    """The sha256 of an assembled filter, as `run.json` carries it (I-15)."""
    return hashlib.sha256(program).hexdigest()


def assemble(entries: Iterable[Call], machine: str) -> bytes:
    """The filter that allows `entries` on `machine`, one after the other.

    A program of bare comparisons first: for a call without conditions the kernel (from 5.11) remembers the answer by number.
    """
    lines: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_IF_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL_PROCESS)]
    for entry in entries:
        if machine in entry.numbers:
            body = _judged(entry)
            lines += [(_IF_EQUAL, 0, len(body), entry.numbers[machine]), *body]
    lines.append((_RETURN, 0, 0, _ERRNO | errno.EPERM))
    return b"".join(_INSTRUCTION.pack(*line) for line in lines)


def _judged(entry: Call) -> list[_Instruction]:
    """What decides over a call once its number is known; every way through it ends in a return."""
    refusal: _Instruction = (_RETURN, 0, 0, _ERRNO | entry.errno)
    if entry.errno and not entry.conditions:
        return [refusal]
    lines: list[_Instruction] = []
    for condition in entry.conditions:
        lines += [(_LOAD, 0, 0, condition.offset)]
        if condition.mask != _WORD:
            lines += [(_AND, 0, 0, condition.mask)]
        count = len(condition.values)
        lines += [(_IF_EQUAL, count - i, 0, value) for i, value in enumerate(condition.values)]
        lines += [refusal]
    return [*lines, (_RETURN, 0, 0, _ALLOW)]


def install(program: bytes) -> None:
    """Put the filter in force for all threads of this process, for good. No-new-privs must stand (or CAP_SYS_ADMIN).

    Raises OSError: EACCES without no-new-privs, EINVAL for a damaged program, ENOSYS for a kernel without seccomp.
    """
    lines = ctypes.create_string_buffer(program, len(program))
    filled = _Program(len(program) // _INSTRUCTION.size, ctypes.addressof(lines))
    result = _syscall(
        ctypes.c_long(_SYS_SECCOMP[os.uname().machine]), ctypes.c_ulong(_SET_MODE_FILTER), ctypes.c_ulong(_TSYNC), ctypes.byref(filled)
    )
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"seccomp: {os.strerror(code)}")
    if result > 0:
        raise OSError(errno.ESRCH, f"seccomp: thread {result} has a filter of its own and could not be given this one")
