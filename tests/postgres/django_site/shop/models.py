"""Models with the kinds of fields and relations that applications have."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=80, unique=True)
    email = models.EmailField(null=True, blank=True)
    joined = models.DateTimeField(auto_now_add=True)


class Tag(models.Model):
    id = models.UUIDField(primary_key=True)
    label = models.SlugField()


class Book(models.Model):
    class Binding(models.TextChoices):
        PAPER = "p"
        HARD = "h"

    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    tags = models.ManyToManyField(Tag)
    title = models.CharField(max_length=120, db_index=True)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    pages = models.PositiveIntegerField(default=0)
    binding = models.CharField(max_length=1, choices=Binding, default=Binding.PAPER)
    published = models.DateField(null=True)
    details = models.JSONField(default=dict)
    words = ArrayField(models.CharField(max_length=20), default=list)
    cover = models.BinaryField(null=True)
    weight = models.FloatField(null=True)
    lent_for = models.DurationField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["author", "title"], name="one_title_per_author"),
            models.CheckConstraint(condition=models.Q(price__gte=0), name="price_not_negative"),
        ]
        indexes = [models.Index(fields=["published", "-price"], name="book_published")]
