"""SQL text to bound relational algebra.

``parsing`` makes trees of a text, and ``binder`` resolves names and types against the catalog.
``queries`` and ``expressions`` bind the parts of a query; ``definitions`` and ``changes`` bind the
other statements. Every error names its place in the text.
"""
