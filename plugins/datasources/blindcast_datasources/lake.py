"""The `lake` importer: wide parquet of books and prints, read twice: to judge clock, lattice and order, then to hand it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from attrs import field, frozen
from attrs.validators import in_

from blindcast.contracts import ImportReport
from blindcast.errors import DataError
from blindcast_datasources.options import is_depth, is_rows, is_step, is_zone
