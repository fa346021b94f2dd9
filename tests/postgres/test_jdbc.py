"""pgjdbc: the rows of its DatabaseMetaData are PostgreSQL 15's for the same schema, and its cursors
and batches work. It runs where Java is and the driver's jar (``REMUDA_TEST_PGJDBC``)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

JAR = os.environ.get("REMUDA_TEST_PGJDBC", "/usr/share/java/postgresql.jar")
PROGRAM = Path(__file__).parent / "Metadata.java"
EXPECTED = """\
# tables
public|items|TABLE
public|numbers|TABLE
public|cheap|VIEW
# columns
id|-5|int8|19|0|0|1
name|12|varchar|20|0|0|2
price|2|numeric|10|2|1|3
born|93|timestamptz|35|6|1|4
# key
items|id|1|items_pkey
# indexes
f|items_pkey|3|1|id|A
t|items_name|3|1|name|A
# best
id|int8
# imported
# exported
# schemas
information_schema
pg_catalog
public
# function
lower
# versions
ctid
true
sum 4501500
batch 10
valid true
"""


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
@pytest.mark.skipif(not Path(JAR).exists(), reason="no jar of pgjdbc (REMUDA_TEST_PGJDBC)")
@pytest.mark.parametrize("mode", ["extended", "simple"])
def test_metadata_cursors_and_batches(door, items, numbers, mode):
    url = f"jdbc:postgresql://{door['host']}:{door['port']}/shop?user=bob&preferQueryMode={mode}"
    done = subprocess.run(
        ["java", "-cp", JAR, str(PROGRAM), url], capture_output=True, text=True, timeout=250,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == EXPECTED
