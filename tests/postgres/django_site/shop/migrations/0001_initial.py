"""As makemigrations wrote it."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Author",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80, unique=True)),
                ("email", models.EmailField(blank=True, max_length=254, null=True)),
                ("joined", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("label", models.SlugField()),
            ],
        ),
        migrations.CreateModel(
            name="Book",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(db_index=True, max_length=120)),
                ("price", models.DecimalField(decimal_places=2, max_digits=10)),
                ("pages", models.PositiveIntegerField(default=0)),
                (
                    "binding",
                    models.CharField(
                        choices=[("p", "Paper"), ("h", "Hard")], default="p", max_length=1
                    ),
                ),
                ("published", models.DateField(null=True)),
                ("details", models.JSONField(default=dict)),
                (
                    "words",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20), default=list, size=None
                    ),
                ),
                ("cover", models.BinaryField(null=True)),
                ("weight", models.FloatField(null=True)),
                ("lent_for", models.DurationField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="books",
                        to="shop.author",
                    ),
                ),
                ("tags", models.ManyToManyField(to="shop.tag")),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["published", "-price"], name="book_published")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("author", "title"), name="one_title_per_author"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("price__gte", 0)), name="price_not_negative"
                    ),
                ],
            },
        ),
    ]
