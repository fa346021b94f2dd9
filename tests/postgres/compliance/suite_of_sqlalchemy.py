"""The tests themselves come with SQLAlchemy."""

from sqlalchemy.testing.suite import *  # noqa: F403
