"""Coded exceptions: one class per exit code, one stable code per fault.

    BlindcastError
    |-- VerdictError    1  a negative verdict: a check, gate or comparison failed, a run stopped
    |-- UsageError      2  the command line was wrong
    |-- DataError       3  the data, the submission or the task spec was wrong
    |   `-- ImportDamaged   a file that cannot be read to its end
    |-- IntegrityError  4  something sealed does not check
    |-- DeniedError     5  isolation missing, or authority refused
    |-- FaultError      6  a plugin, or blindcast itself, failed
    `-- BudgetError     7  a budget or a deadline is spent

The place that knows raises facts; the door (`blindcast.cli`) prints them as `error[code]: .. / expected: .. / do: ..`.
"""

from typing import Any, ClassVar

__all__ = [
    "BlindcastError",
    "BudgetError",
    "DataError",
    "DeniedError",
    "FaultError",
    "ImportDamaged",
    "IntegrityError",
    "UsageError",
    "VerdictError",
    "WindowUnknown",
]


class BlindcastError(Exception):
    """A fault with a stable code, in three parts: what happened, what was expected, what to do."""

    exit_code: ClassVar[int] = 6

    def __init__(self, code: str, what: str, *, expected: str = "", do: str = "", **detail: Any) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.expected = expected
        self.do = do
        self.detail = detail  # plain JSON values


class VerdictError(BlindcastError):
    """A negative verdict."""

    exit_code = 1


class UsageError(BlindcastError):
    """The command line, or a variable of the environment, was wrong."""

    exit_code = 2


class DataError(BlindcastError):
    """The data, the submission or the task spec was wrong."""

    exit_code = 3


class IntegrityError(BlindcastError):
    """Something that was sealed, hashed or promised does not check."""

    exit_code = 4


class DeniedError(BlindcastError):
    """Isolation is missing, or authority refused."""

    exit_code = 5


class FaultError(BlindcastError):
    """A plugin, or blindcast itself, failed."""

    exit_code = 6


class BudgetError(BlindcastError):
    """A budget or a deadline is spent."""

    exit_code = 7


class ImportDamaged(DataError):
    """A raw file cannot be read to its end (DI-06): nothing of it is used."""

    def __init__(self, file: str, place: str) -> None:
        super().__init__(
            "import_damaged",
            f"{file} is damaged at {place}",
            expected="a file that can be read and checked to its last byte",
            do="fetch it again; `--allow-missing` leaves such files out and lists them in the pool's `missing`",
            file=file,
            place=place,
        )
        self.file = file
        self.place = place


class WindowUnknown(DataError):
    """A data source was asked for a window it does not have."""

    def __init__(self, ref: object) -> None:
        super().__init__(
            "window_unknown", f"there is no window {ref!r}", expected="a ref that `windows(grid)` lists", do="list the windows first"
        )
