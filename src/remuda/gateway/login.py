"""The user of a request: HTTP's basic authentication, or a session that ``/j_security_check``
began.

The gateway knows no passwords: it passes them on to the members.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections import OrderedDict
from typing import Final

from aiohttp import web

from remuda.gateway.failures import Refused
from remuda.gateway.grids import NOBODY, Credentials, Grids

COOKIE: Final = "REMUDA_SESSION"
SESSIONS_MAX: Final = 1000
_TOKEN_BYTES: Final = 32


class Logins:
    def __init__(self, grids: Grids, *, https: bool = False) -> None:
        self._grids = grids
        self._https = https
        self._sessions: OrderedDict[str, Credentials] = OrderedDict()

    def credentials(self, request: web.Request) -> Credentials:
        """Raises Refused for a header that cannot be read."""
        header = request.headers.get("Authorization")
        if header is not None:
            return _basic(header)
        token = request.cookies.get(COOKIE)
        found = self._sessions.get(token) if token else None
        return NOBODY if found is None else found

    async def on_login(self, request: web.Request) -> web.Response:
        """Drill's form: ``j_username``, ``j_password``. Raises AuthenticationFailed."""
        if request.content_type != "application/x-www-form-urlencoded":
            raise Refused(415, "the login form is application/x-www-form-urlencoded")
        form = await request.post()
        user, password = form.get("j_username"), form.get("j_password")
        if not isinstance(user, str) or not isinstance(password, str):
            raise Refused(400, "the login form has the fields j_username and j_password")
        credentials = Credentials(user, password)
        async with self._grids.client(credentials):
            token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._sessions[token] = credentials
        if len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        response = web.json_response({"status": "logged in", "user": user})
        response.set_cookie(
            COOKIE, token, httponly=True, secure=self._https, samesite="Strict", path="/"
        )
        return response

    async def on_logout(self, request: web.Request) -> web.Response:
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        response = web.json_response({"status": "logged out"})
        response.del_cookie(COOKIE, path="/")
        return response


def _basic(header: str) -> Credentials:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        raise Refused(401, "only basic authentication is supported")
    try:
        user, colon, password = (
            base64.b64decode(text.strip(), validate=True).decode().partition(":")
        )
    except (binascii.Error, UnicodeDecodeError):
        raise Refused(401, "the Authorization header cannot be read") from None
    if not colon:
        raise Refused(401, "the Authorization header cannot be read")
    return Credentials(user, password)
