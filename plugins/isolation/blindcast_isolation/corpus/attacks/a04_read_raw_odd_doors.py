"""Opens raw files by doors that are rarely guarded: pandas, numpy, SQLite, importers, and C libraries with readers of their own (A-04).

Against it: modes, mounts, Landlock. Addresses of `http` and `s3` must reach nothing. Incident: allowed libraries do input and output
in C++ that raises no audit event (CPython gh-87604, #115322).
"""

import configparser
import ctypes
import importlib.machinery
import importlib.readers
import importlib.util
import linecache
import os
import pathlib
import pkgutil
import runpy
import sqlite3
import sys
import tokenize
import types
import urllib.request
import zipfile
import zipimport

import lightgbm
import numpy as np
import pandas as pd
from pyarrow import fs
from toolbox import TARGETS, attempt

LENGTH = 300
RAW = TARGETS["raw_file"]
CSV = TARGETS["raw_csv"]
ROOT = TARGETS["raw_root"]
LISTENER = f"127.0.0.1:{TARGETS['tcp_port']}"


def shown(frame):
    return frame.to_string()[:LENGTH]


def by_sqlite():
    base = sqlite3.connect(f"file:{TARGETS['raw_sqlite']}?mode=ro&immutable=1", uri=True)
    return str([base.execute(f"select * from {name}").fetchall() for (name,) in base.execute("select name from sqlite_master").fetchall()])


def by_attached():
    base = sqlite3.connect(":memory:")
    base.execute("attach ? as other", (f"file:{TARGETS['raw_sqlite']}?mode=ro&immutable=1",))
    names = base.execute("select name from other.sqlite_master").fetchall()
    return str([base.execute(f"select * from other.{name}").fetchall() for (name,) in names])


def by_read_sql():
    base = sqlite3.connect(f"file:{TARGETS['raw_sqlite']}?immutable=1", uri=True)
    name = pd.read_sql("select name from sqlite_master", base).iloc[0, 0]
    return shown(pd.read_sql(f"select * from {name}", base))


def by_resources():
    return importlib.readers.MultiplexedPath(pathlib.Path(ROOT)).joinpath(os.path.basename(RAW)).read_bytes()[:LENGTH]


def by_data_of_package():
    loader = importlib.machinery.SourceFileLoader("blindcast_attack_data", TARGETS["raw_py"])
    sys.modules["blindcast_attack_data"] = module = types.ModuleType("blindcast_attack_data")
    module.__file__ = TARGETS["raw_py"]
    module.__spec__ = importlib.machinery.ModuleSpec("blindcast_attack_data", loader, origin=TARGETS["raw_py"])
    return pkgutil.get_data("blindcast_attack_data", os.path.basename(RAW))[:LENGTH]


def by_module():
    spec = importlib.util.spec_from_file_location("blindcast_attack_module", TARGETS["raw_py"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(vars(module))[-LENGTH:]


def by_path_finder():
    """A folder of its own choice to import from, past the guard's finder."""
    name = os.path.splitext(os.path.basename(TARGETS["raw_py"]))[0]
    spec = importlib.machinery.PathFinder.find_spec(name, [ROOT])
    if spec is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str({key: value for key, value in vars(module).items() if not key.startswith("__")})


def by_lightgbm():
    """LightGBM's C++ reader: its error quotes the field that is no number."""
    try:
        lightgbm.Dataset(CSV, params={"verbosity": -1, "header": True}).construct()
    except lightgbm.basic.LightGBMError as error:
        return str(error)
    return None


def by_lightgbm_model():
    try:
        lightgbm.Booster(model_file=RAW)
    except lightgbm.basic.LightGBMError as error:
        return str(error)
    return None


def by_readline():
    """GNU readline reads a history file in C."""
    import readline

    readline.read_history_file(RAW)
    return "\n".join(readline.get_history_item(i + 1) or "" for i in range(min(5, readline.get_current_history_length())))


def by_tcl():
    """A whole Tcl interpreter with files, processes and sockets, no display needed."""
    import tkinter

    return tkinter.Tcl().eval(f"read [open {{{RAW}}}]")[:LENGTH]


def by_tcl_source():
    """Its error quotes the first word of what it cannot run."""
    import tkinter

    try:
        return tkinter.Tcl().eval(f"source {{{RAW}}}")
    except tkinter.TclError as error:
        if "invalid command name" in str(error):
            return str(error)
        raise


def by_config():
    try:
        with open(RAW) as file:
            configparser.ConfigParser().read_file(file)
    except configparser.Error as error:
        return str(error)
    return None


def by_numpy_c():
    """`tofile` and `fromfile` on a FILE of libc."""
    return np.fromfile(RAW, dtype="u1", count=LENGTH).tobytes()


def by_zip_of_numpy():
    return str(dict(np.load(TARGETS["raw_zip"])))


def by_zip():
    with zipfile.ZipFile(TARGETS["raw_zip"]) as archive:
        return archive.read("loot.py")


def by_zip_import():
    return str(vars(zipimport.zipimporter(TARGETS["raw_zip"]).load_module("loot"))["__loader__"].get_data("loot.py"))


def by_zip_path():
    return zipimport.zipimporter(TARGETS["raw_zip"]).get_source("loot")


def by_tokenize():
    with tokenize.open(RAW) as file:
        return file.read(LENGTH)


def by_loader_error():
    """The dynamic loader opens what it is given."""
    try:
        ctypes.CDLL(RAW)
    except OSError as error:
        return str(error) if "invalid ELF" in str(error) or "too short" in str(error) else None
    return None


def by_s3_of_arrow():
    options = {"region": "us-east-1", "connect_timeout": 0.2, "request_timeout": 0.2, "retry_strategy": fs.AwsStandardS3RetryStrategy(1)}
    system = fs.S3FileSystem(anonymous=True, endpoint_override=LISTENER, scheme="http", **options)
    return str(system.get_file_info("blindcast-attack/raw.parquet"))


def by_s3_of_pandas():
    options = {"client_kwargs": {"endpoint_url": f"http://{LISTENER}"}}
    return shown(pd.read_parquet("s3://blindcast-attack/raw.parquet", storage_options=options))


DOORS = {
    "parquet_address": lambda: shown(pd.read_parquet(f"file://{TARGETS['raw_parquet']}")),
    "csv_mapped": lambda: shown(pd.read_csv(CSV, memory_map=True)),
    "csv_address": lambda: shown(pd.read_csv(f"file://{CSV}")),
    "csv_arrow": lambda: shown(pd.read_csv(CSV, engine="pyarrow")),
    "fwf": lambda: shown(pd.read_fwf(CSV)),
    "feather": lambda: shown(pd.read_feather(TARGETS["raw_feather"])),
    "read_sql": by_read_sql,
    "sqlite": by_sqlite,
    "sqlite_attach": by_attached,
    "load_mapped": lambda: np.load(TARGETS["raw_npy"], mmap_mode="r").tobytes()[:LENGTH],
    "fromfile": by_numpy_c,
    "genfromtxt": lambda: str(np.genfromtxt(RAW, dtype=str, invalid_raise=False)),
    "loadtxt": lambda: str(np.loadtxt(RAW, dtype=str)),
    "datasource": lambda: np.lib.npyio.DataSource(None).open(RAW).read(LENGTH),
    "zip": by_zip,
    "zipimport": by_zip_path,
    "zipimport_module": by_zip_import,
    "zip_numpy": by_zip_of_numpy,
    "linecache": lambda: linecache.getline(RAW, 1) or None,
    "tokenize": by_tokenize,
    "resources": by_resources,
    "pkgutil": by_data_of_package,
    "runpy": lambda: str(runpy.run_path(TARGETS["raw_py"]).get("LOOT") or sorted(runpy.run_path(TARGETS["raw_py"]).items())),
    "loader_data": lambda: importlib.machinery.SourceFileLoader("x", RAW).get_data(RAW)[:LENGTH],
    "module": by_module,
    "path_finder": by_path_finder,
    "config_error": by_config,
    "lightgbm_data": by_lightgbm,
    "lightgbm_model": by_lightgbm_model,
    "readline": by_readline,
    "tcl": by_tcl,
    "tcl_source": by_tcl_source,
    "dlopen": by_loader_error,
    "url_file": lambda: urllib.request.urlopen(f"file://{RAW}").read(LENGTH),
    "url_http": lambda: urllib.request.urlopen(f"http://{LISTENER}/raw", timeout=0.2).read(LENGTH),
    "pandas_http": lambda: shown(pd.read_csv(f"http://{LISTENER}/raw.csv", storage_options={"timeout": "0.2"})),
    "pandas_s3": by_s3_of_pandas,
    "arrow_s3": by_s3_of_arrow,
    "numpy_http": lambda: np.lib.npyio.DataSource(None).open(f"http://{LISTENER}/raw").read(LENGTH),
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in DOORS.items():
                attempt(name, act)
        return 0.5
