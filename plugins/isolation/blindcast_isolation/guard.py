"""The import guard of a child: policy and help text, not a barrier (I-25).

The submission's own modules come from a finder of ours, with a `__import__` of their own; libraries keep theirs, so a
library's lazy and optional imports are untouched.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from types import FrameType, ModuleType
from typing import Any, Final

__all__ = ["Guard", "refusal"]

OURS: Final = ("blindcast", "blindcast_isolation", "msgspec", "attr", "attrs")


def refusal(name: str, allowed: Sequence[str]) -> str:
    """What an import that is not on the list is answered.

    >>> refusal("torch", ["numpy"])
    "'torch' is not among the libraries of this court: numpy, and the standard library"
    """
    return f"{name!r} is not among the libraries of this court: {', '.join(allowed)}, and the standard library"


class Guard(MetaPathFinder):
    """Finds the submission's own modules in `folder` and refuses what is neither these, the standard library nor listed."""

    def __init__(self, folder: str, allowed: Sequence[str]) -> None:
        self._allowed = tuple(allowed)
        self._known = frozenset(sys.stdlib_module_names) | frozenset(allowed)
        self._own = FileFinder(folder, (_loader(self), [".py"]))
        self._hidden: dict[str, ModuleType] = {}
        self._import = builtins.__import__
        self.builtins = vars(builtins) | {"__import__": self._guarded}

    def hide(self) -> None:
        """Take our own modules out of `sys.modules`; whoever is not the submission still finds them."""
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            self._hidden[name] = sys.modules.pop(name)

    def install(self) -> None:
        """Stand before every other finder."""
        sys.meta_path.insert(0, self)

    def load(self, entry: str) -> ModuleType:
        """Run the submission's entry as the module `predictor` and return it. Raises whatever it raises."""
        loader = _loader(self)("predictor", entry)
        spec = ModuleSpec("predictor", loader, origin=entry)
        spec.has_location = True
        module = module_from_spec(spec)
        sys.modules["predictor"] = module
        loader.exec_module(module)
        return module

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The submission's own module, or one of ours; None leaves it to the next finder."""
        if fullname in self._hidden:
            return ModuleSpec(fullname, _Kept(self._hidden[fullname]), is_package=hasattr(self._hidden[fullname], "__path__"))
        if path is not None:
            return None
        own = self._own.find_spec(fullname, target)
        if own is None and fullname not in self._known and self._is_asked_by_submission():
            raise ImportError(refusal(fullname, self._allowed), name=fullname)
        return own

    def _is_asked_by_submission(self) -> bool:
        """Whether the code that imports, by `importlib` say, is the submission's."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and (
            frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code.co_filename == importlib.__file__
        ):
            frame = frame.f_back
        return frame is not None and frame.f_builtins is self.builtins

    def _is_own(self, name: str) -> bool:
        module = sys.modules.get(name)
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        return isinstance(loader, _Guarded) or (module is None and self._own.find_spec(name) is not None)

    def _guarded(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level == 0 and top not in self._known and not self._is_own(top):
            raise ImportError(refusal(top, self._allowed), name=top)
        return self._import(name, globals, locals, fromlist, level)


class _Guarded(SourceFileLoader):
    """Loads a module of the submission with guarded imports; nothing is read from or written to a cache."""

    guard: Guard

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self.guard.builtins
        super().exec_module(module)


def _loader(guard: Guard) -> type[_Guarded]:
    return type("Submitted", (_Guarded,), {"guard": guard})


class _Kept(Loader):
    """Gives back a module that was hidden."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it has run already."""
