"""Django over the door: migrations, models, commands. The engine is the one of docs/postgres.md."""

from __future__ import annotations

import datetime as dt
import io
import os
import time
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from tests.docs.test_postgres_page import PROGRAMS

SITE = Path(__file__).parent / "django_site"


@pytest.fixture(scope="module")
def site(door, tmp_path_factory):
    """Django, set up over the door, with the tables of its own applications and of ``shop`` as they
    were at first."""
    folder = tmp_path_factory.mktemp("django")
    (folder / "remuda_backend").mkdir()
    (folder / "remuda_backend/__init__.py").touch()
    (folder / "remuda_backend/base.py").write_text(PROGRAMS["Django"][1])
    patch = pytest.MonkeyPatch()
    for path in (SITE, folder):
        patch.syspath_prepend(str(path))
    patch.setenv("DOOR_HOST", door["host"])
    patch.setenv("DOOR_PORT", str(door["port"]))
    patch.setenv("DJANGO_SETTINGS_MODULE", "settings")
    # Django sets the time zone of the process. Left behind, it would have the members of later
    # tests started for real.
    patch.setenv("TZ", os.environ.get("TZ", "UTC"))
    import django  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415

    django.setup()
    for application in ("contenttypes", "auth", "admin", "sessions"):
        command("migrate", application)
    command("migrate", "shop", "0001")
    yield connection
    connection.close()
    patch.undo()
    time.tzset()


def command(*words: str, **options: object) -> str:
    from django.core.management import call_command  # noqa: PLC0415

    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


@pytest.fixture(scope="module")
def shop(site):
    """The models, with rows: two authors and twenty books."""
    from shop import models  # noqa: PLC0415

    authors = [models.Author.objects.create(name=name) for name in ("Ann", "Bob")]
    books = [
        models.Book(
            author=authors[n % 2], title=f"Title {n}", price=Decimal(n) / 2, pages=n * 10,
            published=dt.date(2020, 1, 1 + n), details={"n": n, "deep": {"x": [n]}},
            words=[f"w{n}", "z"], cover=b"\0\1", weight=n / 4, lent_for=dt.timedelta(days=n),
        )
        for n in range(20)
    ]  # fmt: skip
    models.Book.objects.bulk_create(books)
    assert all(book.pk for book in books)
    return models


def test_reads_and_aggregates(shop):
    from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Q, Subquery, Sum  # noqa: PLC0415

    books, authors = shop.Book.objects, shop.Author.objects
    first = books.get(title="Title 3")
    assert (first.details, first.words, bytes(first.cover)) == (
        {"n": 3, "deep": {"x": [3]}}, ["w3", "z"], b"\0\1",
    )  # fmt: skip
    assert (first.price, first.lent_for) == (Decimal("1.50"), dt.timedelta(days=3))
    chosen = books.filter(Q(pages__lt=20) | Q(price=F("pages") / 20, pages__gt=170))
    assert [book.title for book in chosen] == ["Title 0", "Title 1", "Title 18"]
    found = books.aggregate(n=Count("id"), s=Sum("price"), a=Avg("pages"), m=Max("published"))
    assert found == {"n": 20, "s": Decimal(95), "a": 95.0, "m": dt.date(2020, 1, 20)}
    totals = authors.annotate(n=Count("books"), s=Sum("books__price")).order_by("name")
    assert [(each.n, each.s) for each in totals[:2]] == [(10, Decimal(45)), (10, Decimal(50))]
    newest = books.filter(author=OuterRef("pk")).order_by("-published")
    asked = authors.annotate(t=Subquery(newest.values("title")[:1]), e=Exists(newest))
    assert asked.get(name="Ann").t == "Title 18"
    joined = books.select_related("author").order_by("-id")[:1]
    assert [book.author.name for book in joined] == ["Bob"]
    assert len(authors.prefetch_related("books__tags").get(name="Ann").books.all()) == 10
    assert books.filter(details__deep__x__0__gt=17).count() == 2
    assert books.filter(details__contains={"n": 4}, details__has_key="deep").count() == 1
    assert books.filter(words__contains=["w6"]).count() == 1
    assert books.filter(published__week_day=2, published__year=2020).count() == 3


def test_writes_and_transactions(shop):
    from django.db import IntegrityError, transaction  # noqa: PLC0415
    from django.db.models import F  # noqa: PLC0415

    authors, books = shop.Author.objects, shop.Book.objects
    assert authors.update_or_create(name="Cy", defaults={"email": "a@x.org"})[1]
    assert not authors.update_or_create(name="Cy", defaults={"email": "b@x.org"})[1]
    given = [shop.Author(name="Cy", email="c@x.org"), shop.Author(name="Di")]
    authors.bulk_create(
        given, update_conflicts=True, unique_fields=["name"], update_fields=["email"]
    )
    authors.bulk_create([shop.Author(name="Cy")], ignore_conflicts=True)
    assert authors.get(name="Cy").email == "c@x.org"
    with transaction.atomic():
        book = books.select_for_update().get(title="Title 5")
        books.filter(pk=book.pk).update(pages=F("pages") + 1)
        with pytest.raises(KeyError), transaction.atomic():
            books.all().delete()
            raise KeyError
    assert books.get(pk=book.pk).pages == 51
    with pytest.raises(IntegrityError, match="shop_author_name_key"):
        authors.create(name="Ann")
    with pytest.raises(IntegrityError, match="price_not_negative"):
        books.filter(title="Title 1").update(price=-1)
    tags = [shop.Tag.objects.create(id=uuid.uuid4(), label=label) for label in "xyz"]
    book.tags.set(tags)
    book.tags.remove(tags[0])
    assert sorted(book.tags.values_list("label", flat=True)) == ["y", "z"]
    changed = list(books.filter(pages__gt=170))
    for each in changed:
        each.details = {"changed": True}
    assert books.bulk_update(changed, ["details"]) == 2
    assert authors.get(name="Di").delete() == (1, {"shop.Author": 1})
    assert sum(1 for _ in books.iterator(chunk_size=7)) == 20


def test_commands(site, shop, tmp_path):
    from django.contrib.auth import authenticate  # noqa: PLC0415
    from django.contrib.auth.models import User  # noqa: PLC0415

    root = User.objects.create_superuser("root", "r@x.org", "secret")
    assert authenticate(username="root", password="secret") == root
    assert root.has_perm("shop.add_book")
    described = command("inspectdb", "shop_book")
    assert "details = models.JSONField()" in described
    assert "price = models.DecimalField(max_digits=10, decimal_places=2)" in described
    (tmp_path / "dump.json").write_text(command("dumpdata", "shop"))
    command("flush", interactive=False)
    assert shop.Book.objects.count() == 0
    command("loaddata", str(tmp_path / "dump.json"))
    assert shop.Book.objects.count() == 20
    highest = max(shop.Author.objects.values_list("id", flat=True))
    assert shop.Author.objects.create(name="next").pk == highest + 1
    shop.Author.objects.filter(name="next").delete()


# --- migrations that are transactions ----------------------------------------------------------


@pytest.fixture(scope="module")
def atomic(site, shop):
    """The same site through Django's own engine: its migrations are transactions."""
    from django.db import connections  # noqa: PLC0415

    options = {"options": "-c definitions_in_transactions=transactional"}
    engine = "django.db.backends.postgresql"
    own = {**site.settings_dict, "ENGINE": engine, "OPTIONS": options}
    connections.settings["atomic"] = own
    yield connections["atomic"]
    connections["atomic"].close()
    del connections["atomic"], connections.settings["atomic"]


@pytest.fixture
def executor(atomic):
    from django.db.migrations.executor import MigrationExecutor  # noqa: PLC0415

    return MigrationExecutor(atomic)


def wagons(ends_well: bool):
    """A migration that makes tables which refer to each other and to one that was there before,
    adds a column to that one, and writes rows of all."""
    from django.db import migrations, models  # noqa: PLC0415

    def fill(apps, editor):
        alias = editor.connection.alias
        wagon, wheel = apps.get_model("shop", "Wagon"), apps.get_model("shop", "Wheel")
        author = apps.get_model("shop", "Author").objects.using(alias).get(name="Ann")
        red = wagon.objects.using(alias).create(name="red", author=author)
        wheel.objects.using(alias).bulk_create([wheel(wagon=red, place=n) for n in range(4)])
        author.email = "ann@x.org"
        author.save()
        assert wheel.objects.using(alias).filter(wagon__author__name="Ann").count() == 4
        if not ends_well:
            raise KeyError

    def empty(apps, editor):
        author = apps.get_model("shop", "Author").objects.using(editor.connection.alias)
        author.filter(name="Ann").update(email=None)

    key = models.BigAutoField(primary_key=True)
    made = migrations.Migration("0003_wagons", "shop")
    made.operations = [
        migrations.CreateModel(
            "Wagon",
            [
                ("id", key),
                ("name", models.CharField(max_length=20, unique=True)),
                ("author", models.ForeignKey("shop.author", models.CASCADE)),
            ],
        ),
        migrations.CreateModel("Wheel", [("id", key), ("place", models.IntegerField())]),
        migrations.AddField(
            "wheel", "wagon", models.ForeignKey("shop.wagon", models.CASCADE, null=True)
        ),
        migrations.AddConstraint(
            "wheel", models.UniqueConstraint(fields=["wagon", "place"], name="one_wheel_per_place")
        ),
        migrations.RunPython(fill, empty),
        migrations.RenameField("wheel", "place", "position"),
    ]
    return made


def left(atomic) -> tuple[list[str], list[tuple[object, ...]], bool]:
    """The tables of the migration, the author it changes, whether it is recorded."""
    from django.db.migrations.recorder import MigrationRecorder  # noqa: PLC0415

    with atomic.cursor() as cursor:
        tables = set(atomic.introspection.table_names(cursor))
        cursor.execute("SELECT email FROM shop_author WHERE name = 'Ann'")
        recorded = ("shop", "0003_wagons") in MigrationRecorder(atomic).applied_migrations()
        return sorted(tables & {"shop_wagon", "shop_wheel"}), cursor.fetchall(), recorded


def test_a_migration_that_fails_leaves_nothing(atomic, executor):
    assert atomic.features.can_rollback_ddl
    state = executor.loader.project_state(("shop", "0001_initial"))
    with pytest.raises(KeyError):
        executor.apply_migration(state, wagons(ends_well=False))
    assert left(atomic) == ([], [(None,)], False)


def test_a_migration_is_there_as_a_whole_and_taken_back_as_a_whole(atomic, executor):
    from django.db import IntegrityError  # noqa: PLC0415

    state = executor.loader.project_state(("shop", "0001_initial"))
    migration = wagons(ends_well=True)
    executor.apply_migration(state.clone(), migration)
    assert left(atomic) == (["shop_wagon", "shop_wheel"], [("ann@x.org",)], True)
    with atomic.cursor() as cursor:
        cursor.execute("SELECT position FROM shop_wheel ORDER BY position")
        assert cursor.fetchall() == [(n,) for n in range(4)]
        with pytest.raises(IntegrityError, match="one_wheel_per_place"):
            cursor.execute("INSERT INTO shop_wheel (position, wagon_id) VALUES (1, 1)")
    executor.unapply_migration(state, migration)
    assert left(atomic) == ([], [(None,)], False)


def test_a_later_migration_alters_tables_with_rows(site, shop):
    command("migrate", "shop", "0002")
    with site.cursor() as cursor:
        cursor.execute("SELECT title, rating FROM shop_book WHERE rating <> 3")
        assert cursor.fetchall() == [("Title 1", 5)]
        constraints = site.introspection.get_constraints(cursor, "shop_book")
        assert {"book_appeared", "book_rating", "rating_to_5", "title_rating"} <= constraints.keys()
        assert "price_not_negative" not in constraints
        names = [each.name for each in site.introspection.get_table_description(cursor, "racks")]
    assert names == ["code"]
    assert "No planned migration operations." in command("migrate", plan=True)
