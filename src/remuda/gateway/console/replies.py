"""Forms of the answers: errors as JSON, headers that bound the rights of the page."""

from __future__ import annotations

import json
from typing import Any, Final

from aiohttp import web

from remuda.errors import AuthenticationFailed, RemudaError

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Nothing from elsewhere, no script or style within the text of the page, no frame around it."""


def failure(error: RemudaError) -> dict[str, Any]:
    """An error with all that it says; "" and None are left out."""
    position = error.position
    found = {
        "message": error.message,
        "sqlstate": error.sqlstate,
        "detail": error.detail,
        "hint": error.hint,
        "context": error.context,
        "member": error.member,
        "offset": None if position is None else position.offset,
        "length": None if position is None else position.length,
        "login": isinstance(error, AuthenticationFailed) or None,
    }
    return {name: value for name, value in found.items() if value not in ("", None)}


def answer(found: object, status: int = 200) -> web.Response:
    return web.Response(
        status=status,
        text=json.dumps(found, ensure_ascii=False),
        content_type="application/json",
        headers={**HEADERS, "Cache-Control": "no-store"},
    )
