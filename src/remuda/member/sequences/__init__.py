"""Numbers of sequences.

``states`` takes blocks of numbers from the owner of a sequence's state, and is that owner.
``calls`` makes the calls of ``nextval`` and its kind for the rows of a statement.
"""
