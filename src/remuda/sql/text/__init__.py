"""The text of a statement before it becomes a tree: tokens, places, constants, suggestions.

``lexer`` splits a text into the tokens of ``lexemes``. No module here knows the catalog.
"""
