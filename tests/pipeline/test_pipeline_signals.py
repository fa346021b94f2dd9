"""What a signal does to a pipeline that runs."""

from __future__ import annotations

import logging
import signal
import threading

import pytest

pytest.importorskip("pyspark")

from remuda.cli.pipeline_command import _signals


def test_a_batch_is_interrupted_whatever_else_the_signal_has_ended() -> None:
    stop = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), _signals(stop, gently=False):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            assert not logging.getLogger().isEnabledFor(logging.CRITICAL), "no traceback is shown"
            raise ConnectionRefusedError  # Java is gone
    assert stop.is_set()
    assert signal.getsignal(signal.SIGTERM) is before
    assert logging.getLogger().isEnabledFor(logging.CRITICAL)


def test_a_stream_goes_on_until_it_looks() -> None:
    stop = threading.Event()
    with _signals(stop, gently=True):
        signal.raise_signal(signal.SIGINT)
    assert stop.is_set()


def test_an_error_without_a_signal_is_itself() -> None:
    with pytest.raises(ConnectionRefusedError), _signals(threading.Event(), gently=False):
        raise ConnectionRefusedError
