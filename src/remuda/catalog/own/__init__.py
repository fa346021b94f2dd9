"""Parts of the catalog that one session alone has: the definitions of its open transaction, and the
numbers of its temporary sequences."""
