"""Alembic over the door: upgrade, downgrade, stamp, autogenerate. The one setting that its ini file
needs is told in docs/postgres.md."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

ENVIRONMENT = """
import sqlalchemy as sa
from alembic import context

section = context.config.get_section(context.config.config_ini_section)
engine = sa.engine_from_config(section, poolclass=sa.pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=context.config.attributes["models"])
    with context.begin_transaction():
        context.run_migrations()
"""
TEMPLATE = '''"""${message}"""
import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade():
    ${upgrades if upgrades else "pass"}


def downgrade():
    ${downgrades if downgrades else "pass"}
'''


def first_models() -> sa.MetaData:
    models = sa.MetaData()
    sa.Table(
        "planes", models,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(20), nullable=False, unique=True),
        sa.Column("built", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("weight", sa.Integer),
    )  # fmt: skip
    return models


def later_models() -> sa.MetaData:
    models = sa.MetaData()
    sa.Table(
        "planes", models,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(60), nullable=False, unique=True),
        sa.Column("built", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("weight", sa.BigInteger, nullable=False),
        sa.Column("seats", sa.Integer, server_default="100", nullable=False),
        sa.Index("planes_seats", "seats"),
    )  # fmt: skip
    sa.Table(
        "crews", models,
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("plane", sa.Integer, nullable=False, index=True),
        sa.Column("notes", sa.Text, comment="what to know"),
        sa.CheckConstraint("plane > 0", name="crews_plane"),
        sa.UniqueConstraint("plane", "notes", name="crews_once"),
        comment="who flies",
    )  # fmt: skip
    return models


def last_models() -> sa.MetaData:
    """What a downgrade takes away: a column, its index and a table."""
    models = later_models()
    models.tables["planes"].append_column(sa.Column("range", sa.Integer, index=True))
    sa.Table("ports", models, sa.Column("code", sa.String(4), primary_key=True))
    return models


@pytest.fixture
def project(door, tmp_path):
    """A project whose ini file has the address of the door, and nothing else."""
    (tmp_path / "scripts/versions").mkdir(parents=True)
    (tmp_path / "scripts/env.py").write_text(ENVIRONMENT)
    (tmp_path / "scripts/script.py.mako").write_text(TEMPLATE)
    config = Config(tmp_path / "alembic.ini")
    url = f"postgresql+psycopg://bob@{door['host']}:{door['port']}/shop"
    for name, value in (
        ("script_location", str(tmp_path / "scripts")),
        ("path_separator", "os"),
        ("sqlalchemy.url", url),
    ):
        config.set_main_option(name, value)
    engine = sa.create_engine(url)
    yield config, engine
    engine.dispose()


def differences(engine: sa.Engine, models: sa.MetaData) -> list[object]:
    """Of the tables in the database from the models, those of other tests left out."""
    ours = {"planes", "crews", "ports"}

    def included(thing, name, kind, _reflected, _other):
        return kind != "table" or name in ours

    with engine.connect() as connection:
        options = {"include_object": included, "compare_server_default": False}
        return compare_metadata(MigrationContext.configure(connection, opts=options), models)


def test_migrations_up_and_down(project):
    config, engine = project
    config.attributes["models"] = first_models()
    command.revision(config, "first", autogenerate=True, rev_id="1")
    command.upgrade(config, "head")
    assert differences(engine, first_models()) == []
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO planes (name, weight) VALUES ('A', 1), ('B', 2)"))
    config.attributes["models"] = later_models()
    command.revision(config, "later", autogenerate=True, rev_id="2")
    command.upgrade(config, "head")
    assert differences(engine, later_models()) == []
    with engine.connect() as connection:
        found = connection.execute(sa.text("SELECT name, weight, seats FROM planes ORDER BY id"))
        assert found.all() == [("A", 1, 100), ("B", 2, 100)]
    command.stamp(config, "1")
    command.stamp(config, "2")
    with engine.connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == "2"
        assert sa.inspect(connection).has_table("crews")
    config.attributes["models"] = last_models()
    command.revision(config, "last", autogenerate=True, rev_id="3")
    command.upgrade(config, "head")
    assert differences(engine, last_models()) == []
    command.downgrade(config, "2")
    assert differences(engine, later_models()) == []
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM planes")).scalar() == 2
    with pytest.raises(sa.exc.NotSupportedError, match="cannot become INTEGER"):
        command.downgrade(config, "1")
