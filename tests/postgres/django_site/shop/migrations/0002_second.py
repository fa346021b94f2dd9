"""The changes that applications make to tables with rows."""

from django.db import migrations, models


def fill(apps, schema_editor):
    apps.get_model("shop", "Book").objects.filter(title="Title 1").update(rating=5)


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AddField("book", "rating", models.IntegerField(default=3)),
        migrations.AddField(
            "book", "isbn", models.CharField(max_length=13, null=True, unique=True)
        ),
        migrations.AddField("book", "seen", models.DateTimeField(auto_now=True, null=True)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField("book", "title", models.CharField(max_length=200, db_index=True)),
        migrations.AlterField("book", "pages", models.BigIntegerField(null=True)),
        migrations.AlterField("book", "weight", models.FloatField(default=0.5)),
        migrations.RenameField("book", "published", "appeared"),
        migrations.RenameIndex("book", "book_appeared", old_name="book_published"),
        migrations.AddIndex("book", models.Index(fields=["rating"], name="book_rating")),
        migrations.AddConstraint(
            "book", models.CheckConstraint(condition=models.Q(rating__lte=5), name="rating_to_5")
        ),
        migrations.AddConstraint(
            "book", models.UniqueConstraint(fields=["title", "rating"], name="title_rating")
        ),
        migrations.RemoveConstraint("book", "price_not_negative"),
        migrations.RemoveField("book", "lent_for"),
        migrations.CreateModel(
            "Shelf",
            [
                ("code", models.CharField(max_length=8, primary_key=True)),
                ("books", models.ManyToManyField("shop.book")),
            ],
        ),
        migrations.AddField(
            "author", "shelf", models.ForeignKey("shop.shelf", models.SET_NULL, null=True)
        ),
        migrations.RenameModel("Shelf", "Rack"),
        migrations.AlterModelTable("Rack", "racks"),
        migrations.AlterUniqueTogether("author", {("name", "email")}),
        migrations.AlterField(
            "author", "email", models.EmailField(max_length=254, default="", null=False)
        ),
        migrations.AlterModelTableComment("book", "what is sold"),
        migrations.AlterField(
            "book", "binding", models.CharField(max_length=1, db_comment="how", db_default="p")
        ),
    ]
