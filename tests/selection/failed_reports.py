"""The report of a failed test is written in every case, and the session goes on.

pytest parses the source of the frames that it shows. Python 3.11 counts the depth of that work in
one place for the whole process: when a garbage collection interrupts it, runs Python code (a
callback or a finalizer) and so lets another thread parse source, it raises SystemError. A logged
exception of a member parses source, and Hypothesis calls back at each collection. An exception
while pytest writes a report ends the process of tests, and with it the whole run. So the garbage
collector waits while a report is written, and a report that fails all the same is a plain one.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    collects = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    except Exception as error:
        if call.excinfo is None:
            raise
        return plain_report(item, call, call.excinfo, error)
    finally:
        if collects:
            gc.enable()


def plain_report(
    item: pytest.Item,
    call: pytest.CallInfo[None],
    found: pytest.ExceptionInfo[BaseException],
    error: Exception,
) -> pytest.TestReport:
    """The failure with its frames by file and line, which reads no source."""
    frames = (
        f"{frame.f_code.co_filename}:{line}: in {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(found.tb)
    )
    lines = [found.exconly(), *frames, f"(pytest could not write the report: {error!r})"]
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed",
        longrepr="\n".join(lines),
        when=call.when,
        duration=call.duration,
        start=call.start,
        stop=call.stop,
    )
