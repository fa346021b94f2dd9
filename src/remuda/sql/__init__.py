"""SQL text to bound relational algebra. Only this package uses sqlglot.

``parser`` makes trees of a text, and ``binder`` resolves names and types against the catalog.
``queries``, ``expressions`` and ``relations`` bind the parts of a query; ``changes``, ``modify``
and ``merge`` bind statements that write rows. Every error names its place in the text.
"""
