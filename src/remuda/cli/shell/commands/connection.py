"""Commands of the connection."""

from __future__ import annotations

from remuda.cli.shell.commands.catalogue import Call, Command, Outcome
from remuda.errors import InputError


def _connect(call: Call) -> Outcome:
    r"""``\c ADDRESS [USER]``, or psql's words: database, user, host, port."""
    words = ["" if word == "-" else word for word in call.words.all()]
    words += [""] * (4 - len(words))
    session = call.session
    host, port = session.host_and_port
    if ":" in words[0]:
        address, user = words[0], words[1]
    else:
        # A cluster has one database, under any name.
        user = words[1]
        address = f"{words[2] or host}:{words[3] or port}" if words[2] or words[3] else ""
    session.reconnect(address, user)
    session.say(f"You are now connected to {', '.join(session.client.addresses)}{_as(call)}.")
    return None


def _info(call: Call) -> Outcome:
    session = call.session
    version = session.client.sql("SHOW server_version").scalar()
    session.stdout.write(
        f"You are connected to {', '.join(session.client.addresses)}{_as(call)}"
        f" (PostgreSQL's dialect {version}).\n"
    )
    return None


def _as(call: Call) -> str:
    name = call.session.client.sql("SELECT current_user").scalar()
    return f' as user "{name}"'


def _encoding(call: Call) -> Outcome:
    word = call.words.next()
    if word is None:
        call.session.stdout.write("UTF8\n")
    elif word.replace("-", "").upper() not in ("UTF8", "UNICODE"):
        raise InputError(
            f"{word}: invalid encoding name or conversion procedure not found",
            hint="Texts are UTF8.",
        )
    return None


def _password(_call: Call) -> Outcome:
    raise InputError(
        "passwords are in the users' file of the members",
        hint="remuda user password NAME --file FILE changes one.",
    )


COMMANDS = (
    Command(
        ("c", "connect"),
        _connect,
        "[ADDRESS [USER]]",
        "connect to another member, or as another user",
    ),
    Command(("conninfo",), _info, "", "what the shell is connected to"),
    Command(("encoding",), _encoding, "[NAME]", "the encoding of texts, which is UTF8"),
    Command(("password",), _password, "[USER]", "how a password is changed"),
)
