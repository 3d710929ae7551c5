"""Fabricated distributions: what a test needs to meet a plugin that nobody installed (plugins.md section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["fabricate"]


def fabricate(
    folder: Path, distribution: str, modules: Mapping[str, str], *, version: str = "1.0", entries: Mapping[str, str] | None = None
) -> Path:
    """Write `<distribution>-<version>.dist-info` beside modules (name -> source) into `folder`, and return `folder`.

    `entries` maps entry points to their values; without it each module is one, under its own name. The distribution is
    installed for whoever has `folder` on `sys.path` or `PYTHONPATH`.
    """
    points = entries if entries is not None else {name: name for name in modules}
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[blindcast]\n{lines}", encoding="utf-8")
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return folder
