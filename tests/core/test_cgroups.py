"""The CPU quota of the groups that hold this process, read from trees made up on the spot (isolation.md I-80)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from blindcast.cgroups import cpu_quota

UNIFIED = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
Tree = Callable[[str, str, Mapping[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A host: the lines of mountinfo, those of this process's groups, and files with their text."""

    def make(mounts: str, groups: str, files: Mapping[str, str]) -> Path:
        known = {"proc/self/mountinfo": mounts, "proc/self/cgroup": groups, **files}
        for name, text in known.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        return tmp_path

    return make


def test_the_tightest_of_the_own_group_and_those_above_it_counts(tree: Tree) -> None:
    root = tree(
        UNIFIED,
        "0::/a/b",
        {
            "sys/fs/cgroup/a/b/cpu.max": "400000 100000",
            "sys/fs/cgroup/a/cpu.max": "150000 50000",
            "sys/fs/cgroup/c/cpu.max": "1000 100000",
        },
    )
    assert cpu_quota(root) == (150_000, 50_000)


def test_max_is_no_limit(tree: Tree) -> None:
    """IV-07."""
    assert cpu_quota(tree(UNIFIED, "0::/a", {"sys/fs/cgroup/a/cpu.max": "max 100000"})) == (None, 100_000)


def test_a_container_sees_its_group_as_the_root(tree: Tree) -> None:
    """The mount shows a group of the host; the process's path is told from the host's top, or from the container's."""
    mount = "30 20 0:26 /box/one /sys/fs/cgroup ro - cgroup2 cgroup rw"
    for group in ("/box/one", "/", "/../../elsewhere"):
        assert cpu_quota(tree(mount, f"0::{group}", {"sys/fs/cgroup/cpu.max": "250000 100000"})) == (250_000, 100_000)


@pytest.mark.parametrize(("quota", "found"), [("-1", (None, 100_000)), ("300000", (300_000, 100_000))])
def test_in_the_hybrid_layout_the_first_version_says_it(tree: Tree, quota: str, found: tuple[int | None, int]) -> None:
    """A unified hierarchy without the CPU controller stands beside that of v1."""
    mounts = "\n".join(
        [
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
            "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
        ]
    )
    own = "sys/fs/cgroup/cpu,cpuacct/jobs"
    files = {f"{own}/cpu.cfs_quota_us": quota, f"{own}/cpu.cfs_period_us": "100000", "sys/fs/cgroup/unified/cgroup.procs": "1"}
    assert cpu_quota(tree(mounts, "3:memory:/x\n2:cpu,cpuacct:/jobs\n0::/", files)) == found


def test_a_mount_point_with_a_space_is_found(tree: Tree) -> None:
    mount = "30 20 0:26 / /sys/fs/my\\040groups rw shared:4 - cgroup2 cgroup2 rw"
    assert cpu_quota(tree(mount, "0::/", {"sys/fs/my groups/cpu.max": "100000 100000"})) == (100_000, 100_000)


@pytest.mark.parametrize("text", ["", "fast", "1 2 3", "100000 0"])
def test_what_cannot_be_read_limits_nothing(tree: Tree, text: str) -> None:
    quota, period = cpu_quota(tree(UNIFIED, "0::/", {"sys/fs/cgroup/cpu.max": text}))
    assert (quota is None) == (text != "100000 0")
    assert period == 100_000


def test_a_host_without_groups_has_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) == (None, 100_000)
