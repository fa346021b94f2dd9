"""The text of a statement before it becomes a tree: tokens, places, constants, suggestions.

``tokens`` splits a text; the other token modules rewrite what sqlglot reads differently. No module
here knows the catalog.
"""
