"""The public compliance suite of PEP 249 (``dbapi-compliance``), against real members.

Overridden are only tests of what PEP 249 makes optional, and that Remuda has not:

- ``test_nextset``: a statement has one result, and cursors have no ``nextset``;
- ``test_setoutputsize``: the suite leaves it to the driver; it must do no harm;
- ``test_callproc`` stays as it is: it passes because cursors have no ``callproc``.
"""

from __future__ import annotations

import dbapi20
import pytest

import remuda.dbapi

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="class")
def _addresses(request, cluster):
    request.cls.connect_args = (cluster.addresses,)


@pytest.mark.usefixtures("_addresses")
class TestCompliance(dbapi20.DatabaseAPI20Test):
    driver = remuda.dbapi

    def test_nextset(self):
        connection = self._connect()
        assert not hasattr(connection.cursor(), "nextset")
        connection.close()

    def test_setoutputsize(self):
        connection = self._connect()
        with connection.cursor() as cursor:
            cursor.setoutputsize(1)
            cursor.execute("SELECT repeat('x', 1000)")
            assert cursor.fetchone() == ("x" * 1000,)
        connection.close()


@pytest.mark.usefixtures("_addresses")
class TestComplianceOfPyformat(TestCompliance):
    """The same, with parameters by name."""

    class driver:  # noqa: N801  (the suite's name)
        pass

    for _name in remuda.dbapi.__all__:
        setattr(driver, _name, getattr(remuda.dbapi, _name))
    driver.paramstyle = "pyformat"
    connect_kw_args = {"paramstyle": "pyformat"}  # noqa: RUF012
