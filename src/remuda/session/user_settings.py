"""The settings of a user's entry, with which the PostgreSQL sessions of the user begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from remuda.errors import InputError
from remuda.session.settings import checked, setting_of

_OF_ONE_TRANSACTION: Final = frozenset(
    {"transaction_deferrable", "transaction_isolation", "transaction_read_only"}
)


def user_setting(name: str, value: str) -> tuple[str, str]:
    """The name and the value in their normal form. Raises UndefinedSetting, CannotChangeSetting,
    InputError, NotSupported."""
    setting = setting_of(name)
    key = setting.name.lower()
    if key in _OF_ONE_TRANSACTION:
        raise InputError(
            f'parameter "{setting.name}" belongs to one transaction',
            hint=f"default_{key} is that of new transactions.",
        )
    return key, checked(setting, value)


def check_user_settings(settings: Mapping[str, str]) -> None:
    """Raises what ``user_setting`` raises."""
    for name, value in settings.items():
        user_setting(name, value)
