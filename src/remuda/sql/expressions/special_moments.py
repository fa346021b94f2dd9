"""``DATE 'today'``, ``TIMESTAMP 'now'`` and the like: words that stand for moments.

Where PostgreSQL reads the clock when it reads the literal, these are expressions: each execution of
a statement has its own moment.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import DATE, INTEGER, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType
from remuda.plan.expression import Call, Cast, Expression, Literal

_DAYS: Final = {"today": 0, "tomorrow": 1, "yesterday": -1}
_KINDS: Final = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


def special_moment(text: str, target: SqlType) -> Expression | None:
    """The meaning of the word, as a value of ``target``; None: it is no such word there."""
    word = text.strip().lower()
    if target.kind not in _KINDS or word not in {"now", "epoch", *_DAYS}:
        return None
    if word == "epoch":
        return Literal(target, 0)
    today = Call(DATE, "current_date", ())
    if word == "now":
        if target == DATE:
            return today
        now = Call(TIMESTAMPTZ, "current_timestamp", ())
        return now if target.kind is Kind.TIMESTAMPTZ else Cast(TIMESTAMP, now)
    day: Expression = today
    if _DAYS[word]:
        day = Call(DATE, "+", (today, Literal(INTEGER, _DAYS[word])))
    return day if target == DATE else Cast(target, day)
