"""Imports what is not on the list: by name, through `sys.modules`, from a file, as a library's own copy of another.

Against it: nothing. The guard is policy and help, it says what the list is (smolagents CVE-2025-5120 took such a list for a
barrier); what is imported has no more rights than the child, and the kernel stands behind it.
"""

import builtins
import gc
import importlib
import importlib.util
import os
import sys
import types

import numpy
from toolbox import attempt

SITE = os.path.dirname(os.path.dirname(numpy.__file__))
NAMES = ("torch", "requests", "yaml", "joblib", "cffi", "pip", "blindcast", "blindcast_isolation", "msgspec", "attrs", "pluggy")


def told(module):
    return f"{module.__name__} from {getattr(module, '__file__', None)}"


def by_name(name):
    return told(__import__(name))


def by_importlib(name):
    return told(importlib.import_module(name))


def by_modules(name):
    return told(sys.modules[name])


def by_file(name):
    """A module of the libraries' folder, made from its file."""
    path = os.path.join(SITE, name, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[os.path.dirname(path)])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return told(module)


def by_path_finder(name):
    spec = importlib.machinery.PathFinder.find_spec(name, sys.path)
    return told(spec.loader.load_module(name))


def by_other_builtins(name):
    """The import of somebody else: that of a library's module."""
    return told(numpy.__builtins__["__import__"](name) if isinstance(numpy.__builtins__, dict) else numpy.__builtins__.__import__(name))


def by_library(name):
    """The name run in a function whose globals are a library's."""
    code = compile(f"import {name} as found", "<string>", "exec")
    space = dict(vars(numpy))
    types.FunctionType(code, space)()
    return told(space["found"])


def by_meta_path(name):
    """With every finder but the interpreter's own taken away."""
    kept = sys.meta_path[:]
    try:
        sys.meta_path[:] = [finder for finder in kept if isinstance(finder, type)]
        return told(importlib.import_module(name))
    finally:
        sys.meta_path[:] = kept


def by_collector(name):
    gc.unfreeze()
    return told(next(value for value in gc.get_objects() if type(value) is types.ModuleType and value.__name__ == name))


def by_import_restored(name):
    builtins.__import__ = importlib.__import__
    return told(importlib.__import__(name))


def vendored():
    from joblib.externals import cloudpickle, loky

    return f"{told(loky)} {told(cloudpickle)}"


def vendored_by_sklearn():
    import sklearn.externals
    from sklearn.externals import array_api_compat

    return f"{told(sklearn.externals)} {told(array_api_compat)}"


def parallel():
    import sklearn.utils.parallel

    return told(sys.modules[sklearn.utils.parallel.Parallel.__mro__[1].__module__.partition(".")[0]])


def f2py():
    import numpy.f2py

    return told(numpy.f2py)


def distutils():
    import numpy.distutils

    return told(numpy.distutils)


def foreign_functions():
    """A foreign function interface that needs no allowed library, and the C API itself."""
    import _ctypes
    import ctypes

    return f"{told(_ctypes)} {ctypes.pythonapi.Py_GetVersion is not None}"


def servers_own():
    """Every module of the server's packages that is in memory, and what of a run stands in them."""
    gc.unfreeze()
    found = []
    for module in [value for value in gc.get_objects() if type(value) is types.ModuleType]:
        if module.__name__.partition(".")[0].startswith("blindcast"):
            plain = {name: value for name, value in vars(module).items() if isinstance(value, (str, bytes, int, float, tuple, list, dict))}
            found.append(f"{module.__name__} {[(name, value) for name, value in plain.items() if not name.startswith('__')]}")
    return "; ".join(found) or None


WAYS = (
    by_name,
    by_importlib,
    by_modules,
    by_file,
    by_path_finder,
    by_other_builtins,
    by_library,
    by_meta_path,
    by_collector,
    by_import_restored,
)


def every(way):
    """What a way gives of all names, or why it gives none; none is known by an earlier way."""
    got, said = [], None
    kept = {} if way is by_modules else {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in NAMES}
    for name in NAMES:
        try:
            got.append(way(name))
        except BaseException as error:
            said = said if isinstance(said, ImportError) else error
            sys.modules.pop(name, None)
    sys.modules.update(kept)
    if not got:
        raise said
    return "; ".join(got)


class Predictor:
    windows = 0

    def predict(self, view):
        self.windows += view.anchor == 0
        if view.anchor == 0 and self.windows == 1:
            for way in WAYS:
                attempt(way.__name__, every, way)
            for act in (vendored, vendored_by_sklearn, parallel, f2py, distutils, foreign_functions, servers_own):
                attempt(act.__name__, act)
        return 0.5
