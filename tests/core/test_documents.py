"""What a run's papers tell of a failure (frontends.md FE-29, grading.md G-54)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from blindcast.conduct import Conduct
from blindcast.documents import _located
from blindcast.submission import Submission
from blindcast.walk import Failure

TRACE = """Traceback (most recent call last):
  File "/submission/predictor.py", line 1, in predict
    raise it
{error}: 41234.5
"""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("ValueError", "ValueError"),
        ("MemoryError", "MemoryError"),
        ("numpy.linalg.LinAlgError", "numpy.linalg.LinAlgError"),
        ("pandas.errors.MergeError", "pandas.errors.MergeError"),
        ("pyarrow.lib.ArrowInvalid", "pyarrow.lib.ArrowInvalid"),
        ("scipy.optimize._nonlin.NoConvergence", "scipy.optimize._nonlin.NoConvergence"),
        ("sklearn.exceptions.NotFittedError", "sklearn.exceptions.NotFittedError"),
        ("lightgbm.basic.LightGBMError", "lightgbm.basic.LightGBMError"),
        ("LightGBMError", "Exception"),
        ("numpy.linalg.Price41234", "Exception"),
        ("numpy.linalg.LinAlgError.Price41234", "Exception"),
        ("predictor.numpy.linalg.LinAlgError", "Exception"),
        ("predictor.ValueError", "Exception"),
        ("builtins.ValueError", "Exception"),
        ("torch.OutOfMemoryError", "Exception"),
    ],
)
def test_a_failures_type_is_a_builtin_or_a_listed_librarys_own(tmp_path: Path, error: str, told: str) -> None:
    """FE-29: the child's word may be forged, so only a name of the fixed list passes, whole."""
    (tmp_path / "predictor.py").write_text("raise it\n")
    run = cast(Conduct, SimpleNamespace(submission=Submission(tmp_path, "", ("predictor.py",))))
    (row,) = _located(run, [Failure(3, 1, "exception", trace=TRACE.format(error=error))])
    assert row == {"target": 3, "anchor": 1, "code": "exception", "type": told, "file": "predictor.py", "line": 1}


def test_three_failures_are_located(tmp_path: Path) -> None:
    """FE-29; one without a traceback has no type."""
    run = cast(Conduct, SimpleNamespace(submission=Submission(tmp_path, "", ())))
    rows = _located(run, [Failure(0, k, "not_finite") for k in range(4)])
    assert [(row["anchor"], row["type"], row["file"]) for row in rows] == [(0, None, None), (1, None, None), (2, None, None)]
