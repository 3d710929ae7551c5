"""An honest workload: what predictors do, library by library. It shows which system calls the filter's list is for (I-15)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

__all__ = ["ASLEEP", "PARTS", "run"]

ASLEEP: Final = "asleep"  # printed when the process may be stopped and continued
_ROWS: Final = 4_000
_THREADS: Final = 8


def _runtime() -> None:
    """The interpreter: lazy imports, files, clocks, names, what went wrong."""
    import csv
    import decimal
    import importlib.metadata
    import platform
    import random
    import signal
    import time
    import uuid
    import xml.etree.ElementTree as ElementTree

    here = Path(os.__file__)
    assert os.access(here, os.R_OK)
    assert not os.path.islink(os.path.realpath(sys.executable))
    assert here.resolve().is_file()
    assert any(here.parent.iterdir())
    with here.open(encoding="utf-8") as file:
        assert next(csv.reader(file))
        assert not file.isatty()
    assert os.path.isabs(os.path.abspath("rows.csv"))
    assert importlib.metadata.version("numpy")
    assert decimal.Decimal(1) / 4 == decimal.Decimal("0.25")
    assert ElementTree.fromstring("<a/>").tag == "a"
    assert platform.system() == "Linux"
    assert random.SystemRandom().random() < 1
    assert uuid.uuid4() != uuid.uuid4()
    assert os.getpid() > 0
    assert len(os.sched_getaffinity(0)) > 0
    assert time.process_time() > 0
    signal.signal(signal.SIGCONT, lambda *_: None)
    time.sleep(0.001)


def _threads() -> None:
    """Threads, locks and waits."""
    import queue
    import threading
    from concurrent.futures import ThreadPoolExecutor

    barrier = threading.Barrier(_THREADS, timeout=30)

    def native(_: int) -> int:
        barrier.wait()
        return threading.get_native_id()

    with ThreadPoolExecutor(_THREADS) as pool:
        assert len(set(pool.map(native, range(_THREADS)))) == _THREADS
    assert not threading.Event().wait(0.001)
    try:
        queue.Queue[int]().get(timeout=0.001)
    except queue.Empty:
        return
    raise AssertionError("an empty queue gave something")


def _numpy() -> None:
    """Arrays: linear algebra over threads of its own, random numbers, saved and loaded, arrays that grow."""
    import io

    import numpy as np

    random = np.random.default_rng()
    square = random.normal(size=(300, 300))
    assert np.allclose(np.linalg.solve(square, square), np.eye(300), atol=1e-6)
    assert np.fft.rfft(square).shape == (300, 151)
    with open(os.__file__, "rb") as file:
        assert np.fromfile(file, "u1").size > 0
    kept = io.BytesIO()
    np.savez_compressed(kept, square=square)
    kept.seek(0)
    assert np.array_equal(np.load(kept)["square"], square)
    grown = np.empty(1 << 20)
    grown.resize(1 << 22, refcheck=False)


def _pandas() -> None:
    """Frames: groups, windows, text, time zones."""
    import io

    import numpy as np
    import pandas as pd

    when = pd.date_range("2026-01-01", periods=_ROWS, freq="s", tz="UTC").tz_convert("Europe/Berlin")
    frame = pd.DataFrame({"price": np.arange(_ROWS, dtype="f8"), "side": np.arange(_ROWS) % 3}, index=when)
    assert len(frame.groupby("side").price.agg(["mean", "std"])) == 3
    assert frame.price.rolling("60s").mean().notna().all()
    assert len(pd.read_csv(io.StringIO(frame.to_csv()))) == _ROWS
    assert len(frame.merge(frame, on="price")) == _ROWS


def _pyarrow() -> None:
    """Tables: computed and read over Arrow's threads, Parquet and IPC in memory."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet

    pa.enable_signal_handlers(False)  # as a child's start does it: its CSV reader wants a pipe to itself for Ctrl-C otherwise
    table = pa.table({"price": np.arange(_ROWS, dtype="f8"), "side": np.arange(_ROWS) % 3})
    assert pyarrow.compute.call_function("sum", [table["price"]]).as_py() == _ROWS * (_ROWS - 1) / 2
    assert table.group_by("side").aggregate([("price", "mean")]).num_rows == 3
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    assert pyarrow.parquet.read_table(pa.BufferReader(sink.getvalue())).equals(table)
    text = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, text)
    assert pyarrow.csv.read_csv(pa.BufferReader(text.getvalue())).num_rows == _ROWS
    assert len(table.to_pandas(use_threads=True)) == _ROWS


def _scipy() -> None:
    """Fits, tests, signals, sparse systems."""
    import numpy as np
    from scipy import fft, optimize, signal, sparse, stats
    from scipy.sparse import linalg

    assert optimize.minimize(optimize.rosen, np.zeros(4)).success
    assert stats.ttest_1samp(np.arange(20.0), 0).pvalue < 0.01
    assert np.shape(signal.lfilter([1.0], [1.0, -0.5], np.ones(50))) == (50,)
    system = sparse.diags([2.0] * 500, format="csc")
    assert np.allclose(np.asarray(linalg.spsolve(system, np.ones(500))), 0.5)
    assert np.shape(fft.fft(np.ones((64, 64)), workers=2)) == (64, 64)


def _sklearn() -> None:
    """Models, over as many threads as were asked for."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    random = np.random.default_rng(0)
    rows = random.normal(size=(_ROWS, 8))
    move = rows[:, 0] + random.normal(size=_ROWS)
    for jobs in (-1, _THREADS):
        forest = RandomForestRegressor(10, max_depth=4, n_jobs=jobs, random_state=0).fit(rows, move)
        assert forest.predict(rows[:10]).shape == (10,)
        assert len(cross_val_score(make_pipeline(StandardScaler(), Ridge()), rows, move, cv=3, n_jobs=jobs)) == 3
    assert HistGradientBoostingRegressor(max_iter=5).fit(rows, move).score(rows, move) > 0
    assert LogisticRegression().fit(rows, move > 0).score(rows, move > 0) > 0.5
    assert KMeans(3, random_state=0).fit(rows).cluster_centers_.shape == (3, 8)


def _lightgbm() -> None:
    """Trees, over one thread and over many."""
    import lightgbm
    import numpy as np

    random = np.random.default_rng(0)
    rows = random.normal(size=(_ROWS, 8))
    for threads in (1, _THREADS, -1):
        booster = lightgbm.train(
            {"verbosity": -1, "num_threads": threads, "objective": "regression"}, lightgbm.Dataset(rows, rows[:, 0]), num_boost_round=5
        )
        assert isinstance(lightgbm.Booster(model_str=booster.model_to_string()).predict(rows[:10]), np.ndarray)


def _workspace() -> None:
    """What code does in its workspace (I-87): files of all the libraries, folders made, moved and removed."""
    import pickle
    import shutil
    import tempfile

    import joblib
    import lightgbm
    import numpy as np
    import pandas as pd

    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name, "made", "too")
        folder.mkdir(parents=True)
        frame = pd.DataFrame({"price": np.arange(100.0)})
        frame.to_csv(folder / "rows.csv")
        frame.to_parquet(folder / "rows.parquet")
        assert pd.read_parquet(folder / "rows.parquet").equals(frame)
        np.save(folder / "rows.npy", frame.price.to_numpy())
        mapped = np.memmap(folder / "mapped", "f8", "w+", shape=(1_000,))
        mapped.flush()
        joblib.dump(frame, folder / "rows.joblib")
        assert joblib.load(folder / "rows.joblib").equals(frame)
        lightgbm.train({"verbosity": -1}, lightgbm.Dataset(np.ones((50, 2)), np.arange(50.0)), 1).save_model(folder / "model.txt")
        assert lightgbm.Booster(model_file=folder / "model.txt").num_trees() == 1
        with (folder / "state.pickle").open("w+b") as file:
            pickle.dump(frame, file)
            file.flush()
            os.fsync(file.fileno())
            file.truncate(2)
        os.replace(folder / "state.pickle", folder / "moved.pickle")
        shutil.copyfile(folder / "moved.pickle", folder / "copied.pickle")
        folder.rename(Path(name, "moved"))
        Path(name, "moved", "copied.pickle").unlink()
        Path(name, "made").rmdir()
        shutil.rmtree(Path(name, "moved"))


def _sleep() -> None:
    """Waits that are stopped and go on: whoever runs this stops and continues the process at each `asleep`."""
    import ctypes
    import signal
    import time

    print(ASLEEP, flush=True)  # noqa: T201  # read by who runs it
    time.sleep(0.3)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)  # a sleep that no handler ends is taken up again by the kernel
    print(ASLEEP, flush=True)  # noqa: T201  # read by who runs it
    assert ctypes.CDLL(None).usleep(ctypes.c_uint(300_000)) == 0


PARTS: Final[Mapping[str, Callable[[], None]]] = {
    "runtime": _runtime,
    "threads": _threads,
    "numpy": _numpy,
    "pandas": _pandas,
    "pyarrow": _pyarrow,
    "scipy": _scipy,
    "sklearn": _sklearn,
    "lightgbm": _lightgbm,
    "workspace": _workspace,
    "sleep": _sleep,
}


def run(parts: tuple[str, ...] = tuple(PARTS)) -> None:
    """Do the named parts, one after the other, and say so on stdout. Raises what a part raises."""
    for name in parts:
        PARTS[name]()
        print(name, flush=True)  # noqa: T201  # read by who runs it
