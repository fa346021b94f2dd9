"""SQLAlchemy's ORM over the door: SERIAL and IDENTITY keys, relationships, the unit of work, bulk
inserts, upserts, RETURNING, savepoints, schemas, reflection."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    joinedload,
    mapped_column,
    relationship,
    selectinload,
)


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "orm_authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(40), unique=True)
    facts: Mapped[dict] = mapped_column(JSONB, default=dict)
    books: Mapped[list[Book]] = relationship(
        back_populates="author", cascade="all, delete-orphan", order_by=lambda: Book.id,
    )  # fmt: skip


class Book(Base):
    __tablename__ = "books"
    __table_args__ = (sa.CheckConstraint("pages > 0", name="some_pages"), {"schema": "orm"})
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("orm_authors.id"), index=True)
    title: Mapped[str]
    pages: Mapped[int] = mapped_column(server_default="1")
    words: Mapped[list[str]] = mapped_column(ARRAY(sa.Text), default=list)
    version: Mapped[int] = mapped_column()
    author: Mapped[Author] = relationship(back_populates="books")
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012


@pytest.fixture(scope="module")
def engine(door):
    made = sa.create_engine(f"postgresql+psycopg://bob@{door['host']}:{door['port']}/shop")
    with made.begin() as connection:
        connection.execute(sa.schema.CreateSchema("orm"))
        Base.metadata.create_all(connection)
    yield made
    made.dispose()


def test_a_unit_of_work(engine):
    with Session(engine) as session:
        ann = Author(name="Ann", facts={"born": 1990, "tags": ["a"]})
        ann.books = [Book(title=f"title {n}", words=["w", str(n)]) for n in range(3)]
        session.add_all([ann, Author(name="Bob")])
        session.commit()
        assert [book.pages for book in ann.books] == [1, 1, 1]
        ann.books[0].pages = 7
        ann.books.pop()
        with session.begin_nested() as inside:
            session.add(Author(name="nobody"))
            session.flush()
            inside.rollback()
        with pytest.raises(IntegrityError, match="orm_authors_name_key"), session.begin_nested():
            session.add(Author(name="Ann"))
            session.flush()
        session.commit()
    with Session(engine) as session:
        asked = sa.select(Author).options(selectinload(Author.books)).order_by(Author.name)
        found = session.scalars(asked).all()
        shown = [(a.name, [(b.title, b.pages, b.version, b.words) for b in a.books]) for a in found]
        expected = [("title 0", 7, 2, ["w", "0"]), ("title 1", 1, 1, ["w", "1"])]
        assert shown == [("Ann", expected), ("Bob", [])]
        book = session.scalars(sa.select(Book).options(joinedload(Book.author)).limit(1)).one()
        assert book.author.facts == {"born": 1990, "tags": ["a"]}
        assert (
            session.scalar(sa.select(Author.name).where(Author.facts["born"].as_integer() == 1990))
            == "Ann"
        )


def test_many_rows_and_upserts(engine):
    with Session(engine) as session:
        session.add(Author(id=99, name="many"))
        session.flush()
        keys = session.scalars(
            sa.insert(Book).returning(Book.id, sort_by_parameter_order=True),
            [{"author_id": 99, "title": f"bulk {n}", "version": 1} for n in range(50)],
        ).all()
        titles = dict(
            session.execute(sa.select(Book.id, Book.title).where(Book.author_id == 99)).all()
        )
        assert [titles[key] for key in keys] == [f"bulk {n}" for n in range(50)]
        for _ in range(2):
            statement = insert(Author).values(name="Cy", facts={"n": 1})
            statement = statement.on_conflict_do_update(
                index_elements=["name"], set_={"facts": {"n": 2}}
            )
            returned = session.execute(statement.returning(Author.name, Author.facts)).one()
        assert tuple(returned) == ("Cy", {"n": 2})
        changed = sa.update(Book).where(Book.author_id == 99, Book.id > keys[40]).values(pages=5)
        assert len(session.scalars(changed.returning(Book.id)).all()) == 9
        assert session.execute(sa.delete(Book).where(Book.author_id == 99)).rowcount == 50
        session.commit()


def test_reflection_in_a_schema(engine):
    models = automap_base()
    models.prepare(engine, schema="orm")
    reflected = models.metadata.tables["orm.books"]
    assert [column.name for column in reflected.primary_key] == ["id"]
    assert reflected.c.id.identity is not None
    checks = sa.inspect(engine).get_check_constraints("books", schema="orm")
    assert [(each["name"], each["sqltext"]) for each in checks] == [("some_pages", "pages > 0")]
    (key,) = sa.inspect(engine).get_foreign_keys("books", schema="orm")
    assert (key["name"], key["constrained_columns"]) == ("books_author_id_fkey", ["author_id"])
    assert (key["referred_table"], key["referred_columns"]) == ("orm_authors", ["id"])
    (index,) = sa.inspect(engine).get_indexes("books", schema="orm")
    assert (index["name"], index["column_names"]) == ("ix_orm_books_author_id", ["author_id"])
