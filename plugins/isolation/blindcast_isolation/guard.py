"""The import guard of a child: policy and help text, not a barrier (I-25, smolagents CVE-2025-5120).

The submission's own modules come from a finder of ours, with a `__import__` of their own; libraries keep theirs, so a
library's lazy and optional imports are untouched. Code that wants past it gets past it: the isolation stands behind.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ExtensionFileLoader, FileFinder, ModuleSpec, SourceFileLoader, SourcelessFileLoader
from importlib.util import module_from_spec
from types import FrameType, ModuleType
from typing import Any, Final

__all__ = ["Guard", "refusal"]

OURS: Final = ("msgspec", "attr", "attrs", "pluggy")  # of the server, beside blindcast and its plugins


def refusal(name: str, allowed: Sequence[str]) -> str:
    """What an import that is not on the list is answered.

    >>> refusal("torch", ["numpy"])
    "'torch' is not among the libraries of this court: numpy, and the standard library"
    """
    return f"{name!r} is not among the libraries of this court: {', '.join(allowed)}, and the standard library"


class Guard(MetaPathFinder):
    """Finds the submission's own modules in `folder` and refuses it what is neither these, the standard library nor listed.

    `allowed` are top-level names (`blindcast.libraries.import_names`), `withheld` modules below them that are refused all
    the same. It answers the statement, `__import__`, `importlib.import_module`, finders asked by hand, and loaders that are
    given a file; what a library imports for itself is its own affair. Modules in the folders `beside` (the workspace of
    `run_code`) count as the submission's too.
    """

    def __init__(self, folder: str, allowed: Sequence[str], withheld: Sequence[str] = (), beside: Sequence[str] = ()) -> None:
        self._allowed, self._withheld = tuple(allowed), tuple(withheld)
        self._known = frozenset(sys.stdlib_module_names) | frozenset(allowed)
        self._folders = tuple(f"{os.path.realpath(place)}/" for place in (folder, *beside))
        self._finders = tuple(FileFinder(place, (_loader(self), [".py"])) for place in (folder, *beside))
        self._hidden: dict[str, ModuleType] = {}
        self._import = builtins.__import__
        self.builtins = vars(builtins) | {"__import__": self._guarded}

    def hide(self) -> None:
        """Take the server's own modules out of `sys.modules`; whoever is not the submission still finds them."""
        for name in [name for name in sys.modules if _is_ours(name.partition(".")[0])]:
            self._hidden[name] = sys.modules.pop(name)

    def install(self) -> None:
        """Stand before every other finder, before `importlib.import_module`, and before loaders that are called by hand."""
        sys.meta_path.insert(0, self)
        importlib.import_module = self._by_name(importlib.import_module)
        for loader in (SourceFileLoader, SourcelessFileLoader):
            loader.exec_module = self._by_file(loader.exec_module)  # type: ignore[method-assign]  # this child only
        ExtensionFileLoader.create_module = self._by_file(ExtensionFileLoader.create_module)  # type: ignore[method-assign]  # this child only

    def load(self, entry: str, name: str = "predictor") -> ModuleType:
        """Run the submission's entry as the module `name` (`__main__` in `run_code`) and return it. Raises whatever it raises."""
        loader = _loader(self)(name, entry)
        spec = ModuleSpec(name, loader, origin=entry)
        spec.has_location = True
        module = module_from_spec(spec)
        sys.modules[name] = module
        loader.exec_module(module)
        return module

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The submission's own module, or one of the server's; None leaves it to the next finder."""
        own = self._own(fullname) if path is None else None
        if own is not None:
            return own
        if self._is_submission(sys._getframe(1)):
            self._check(fullname)
        if fullname in self._hidden:
            return ModuleSpec(fullname, _Kept(self._hidden[fullname]), is_package=hasattr(self._hidden[fullname], "__path__"))
        return None

    def invalidate_caches(self) -> None:
        """Look again for files that were written meanwhile."""
        for finder in self._finders:
            finder.invalidate_caches()

    def _own(self, name: str) -> ModuleSpec | None:
        return next((spec for finder in self._finders if (spec := finder.find_spec(name)) is not None), None)

    def _check(self, name: str) -> None:
        """Raise the help text unless the submission may import `name`, which is neither relative nor its own."""
        if name.partition(".")[0] not in self._known or self._is_withheld(name):
            shown = name if self._is_withheld(name) else name.partition(".")[0]
            raise ImportError(refusal(shown, self._allowed), name=shown)

    def _is_withheld(self, name: str) -> bool:
        return any(name == module or name.startswith(f"{module}.") for module in self._withheld)

    def _is_submission(self, frame: FrameType | None) -> bool:
        """Whether the code that stands behind the import machinery's frames is the submission's."""
        while frame is not None and (
            frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code.co_filename == importlib.__file__
        ):
            frame = frame.f_back
        return frame is not None and frame.f_builtins is self.builtins

    def _is_own(self, name: str) -> bool:
        module = sys.modules.get(name)
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        return isinstance(loader, _Guarded) or (module is None and self._own(name) is not None)

    def _guarded(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and not self._is_own(name.partition(".")[0]):
            self._check(name)
            for inner in fromlist or () if self._withheld else ():
                self._check(f"{name}.{inner}")
        return self._import(name, globals, locals, fromlist, level)

    def _by_name(self, plain: Callable[..., ModuleType]) -> Callable[..., ModuleType]:
        """`importlib.import_module`, which asks no finder for what is loaded already."""

        def import_module(name: str, package: str | None = None) -> ModuleType:
            if not name.startswith(".") and self._is_submission(sys._getframe(1)) and not self._is_own(name.partition(".")[0]):
                self._check(name)
            return plain(name, package)

        return import_module

    def _by_file(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """A loader's method, which asks no finder at all: the file says what it is."""

        def by_file(loader: Any, given: Any) -> Any:
            if self._is_submission(sys._getframe(1)):
                self._check_file(os.path.realpath(loader.path))
            return plain(loader, given)

        return by_file

    def _check_file(self, file: str) -> None:
        """Raise the help text unless a file is the submission's, or one of a module that it may import."""
        if file.startswith(self._folders):
            return
        for root in sorted({os.path.realpath(path) for path in sys.path}, key=len, reverse=True):
            if file.startswith(f"{root}/"):
                parts = file.removeprefix(f"{root}/").split("/")
                self._check(".".join([*parts[:-1], parts[-1].partition(".")[0]]).removesuffix(".__init__"))
                return
        raise ImportError(refusal(file, self._allowed))


class _Guarded(SourceFileLoader):
    """Loads a module of the submission with guarded imports; nothing is read from or written to a cache."""

    guard: Guard

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self.guard.builtins
        super().exec_module(module)


def _is_ours(top: str) -> bool:
    return top == "blindcast" or top.startswith(("blindcast_", "__editable__")) or top in OURS


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
