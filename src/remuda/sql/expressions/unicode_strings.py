"""``U&'d\\0061ta' [UESCAPE '!']``: text with the numbers of its characters."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from remuda.datatypes.sql import NULL
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import Expression, Literal
from remuda.sql.expressions.expressions import ExpressionBinder, register

_BAD_ESCAPES: Final = frozenset("0123456789abcdefABCDEF+'\"" + " \t\n")


def _unicode_string(binder: ExpressionBinder, node: exp.UnicodeString) -> Expression:
    return Literal(NULL, decoded(binder, node))


def decoded(binder: ExpressionBinder, node: exp.UnicodeString) -> str:
    """Raises SqlSyntaxError for escapes that are none."""
    clause = node.args.get("escape")
    escape = str(clause.this) if isinstance(clause, exp.Literal) else "\\"
    if len(escape) != 1 or escape in _BAD_ESCAPES:
        raise binder.context.error(SqlSyntaxError, "invalid Unicode escape character", node)
    quoted = re.escape(escape)
    pattern = rf"{quoted}(?:({quoted})|([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}})|)"

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return escape
        digits = match[2] or match[3]
        if not digits:
            raise binder.context.error(
                SqlSyntaxError,
                "invalid Unicode escape",
                node,
                hint=f"Unicode escapes are {escape}XXXX or {escape}+XXXXXX.",
            )
        number = int(digits, 16)
        if not number or number > 0x10FFFF:
            raise binder.context.error(SqlSyntaxError, "invalid Unicode escape value", node)
        return chr(number)

    text = re.sub(pattern, character, str(node.this))
    try:  # surrogates come in pairs
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise binder.context.error(SqlSyntaxError, "invalid Unicode surrogate pair", node) from None


register(exp.UnicodeString, _unicode_string, "this", "escape")
