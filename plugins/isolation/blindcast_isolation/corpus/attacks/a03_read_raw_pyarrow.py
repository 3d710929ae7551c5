"""Opens raw files by Arrow's C++ readers and file systems, which raise no audit event (A-03).

Against it: modes, mounts, Landlock. Incident: allowed libraries do input and output of their own (CPython #115322).
"""

import os

import pyarrow as pa
from pyarrow import csv, dataset, feather, fs, parquet
from toolbox import TARGETS, attempt

LENGTH = 300
RAW = TARGETS["raw_file"]
ROOT = TARGETS["raw_root"]


def shown(table):
    return str(table.to_pydict())[:LENGTH]


def by_statistics():
    """The footer alone holds the least and the greatest value of each column."""
    footer = parquet.read_metadata(TARGETS["raw_parquet"])
    return str([footer.row_group(0).column(c).statistics for c in range(footer.num_columns)])


def by_dataset():
    return shown(dataset.dataset([TARGETS["raw_parquet"]], format="parquet").to_table())


def by_dataset_folder():
    found = dataset.dataset(ROOT, format="csv", exclude_invalid_files=True)
    return " ".join(found.files) + shown(found.to_table())


def by_list():
    return "\n".join(f"{info.path} {info.size}" for info in fs.LocalFileSystem().get_file_info(fs.FileSelector(ROOT))) + read_all(ROOT)


def read_all(folder):
    local, found = fs.LocalFileSystem(use_mmap=True), b""
    for info in local.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=False)):
        if info.type == fs.FileType.File:
            with local.open_input_stream(info.path) as file:
                found += file.read(100)
    return ascii(found)


def by_subtree():
    with fs.SubTreeFileSystem(ROOT, fs.LocalFileSystem()).open_input_file(os.path.basename(RAW)) as file:
        return file.read(LENGTH)


def by_address():
    system, path = fs.FileSystem.from_uri(f"file://{RAW}")
    with system.open_input_stream(path) as file:
        return file.read(LENGTH)


def by_memory_map():
    with pa.memory_map(RAW, "r") as file:
        return file.read_buffer(LENGTH).to_pybytes()


def by_ipc():
    with pa.OSFile(TARGETS["raw_feather"]) as file:
        return shown(pa.ipc.open_file(file).read_all())


def by_copy():
    for folder in TARGETS["writable"]:
        target = os.path.join(folder, "blindcast-attack-a03-copy")
        try:
            fs.copy_files(f"file://{RAW}", f"file://{target}")
        except OSError:
            continue
        with pa.OSFile(target) as file:
            return file.read(LENGTH)
    raise PermissionError("no copy could be made")


DOORS = {
    "memory_map": by_memory_map,
    "os_file": lambda: pa.OSFile(RAW, "r").read(LENGTH),
    "input_stream": lambda: pa.input_stream(RAW).read(LENGTH),
    "read_table": lambda: shown(parquet.read_table(TARGETS["raw_parquet"])),
    "read_table_mapped": lambda: shown(parquet.read_table(TARGETS["raw_parquet"], memory_map=True)),
    "parquet_file": lambda: shown(parquet.ParquetFile(TARGETS["raw_parquet"]).read()),
    "parquet_statistics": by_statistics,
    "dataset": by_dataset,
    "dataset_folder": by_dataset_folder,
    "feather": lambda: shown(feather.read_table(TARGETS["raw_feather"])),
    "ipc": by_ipc,
    "open_csv": lambda: shown(csv.open_csv(TARGETS["raw_csv"]).read_all()),
    "read_csv": lambda: shown(csv.read_csv(TARGETS["raw_csv"])),
    "fs_read": lambda: fs.LocalFileSystem().open_input_file(RAW).read(LENGTH),
    "fs_list": by_list,
    "fs_subtree": by_subtree,
    "fs_address": by_address,
    "fs_copy": by_copy,
    "link": lambda: pa.OSFile(TARGETS["raw_link"], "r").read(LENGTH),
    "dotdot": lambda: pa.OSFile(TARGETS["raw_dotdot"], "r").read(LENGTH),
    "ledger": lambda: pa.OSFile(TARGETS["ledger"], "r").read(LENGTH),
    "other_run": lambda: read_all(TARGETS["other_run"]),
    "home": lambda: read_all(TARGETS["home"]),
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in DOORS.items():
                attempt(name, act)
        return 0.5
