"""What has to be opened for another uid."""

from __future__ import annotations

from pathlib import Path

from blindcast_isolation.root import closed_parents, interpreter_paths, system_paths


def test_the_topmost_closed_folder_above_a_path_is_found(tmp_path: Path) -> None:
    """I-22."""
    inner = tmp_path / "open" / "closed" / "prefix"
    inner.mkdir(parents=True)
    (tmp_path / "open" / "closed").chmod(0o700)
    tops = [p for p in reversed(inner.parents) if not p.stat().st_mode & 0o001]
    assert closed_parents([str(inner)]) == (str(tops[0]),)


def test_the_interpreters_paths_hold_numpy_and_no_folder_twice() -> None:
    """I-20."""
    import numpy as np

    paths = interpreter_paths()
    assert any(np.__file__.startswith(f"{path}/") for path in (*paths, *system_paths()))
    assert not any(a != b and a.startswith(f"{b}/") for a in paths for b in paths)
