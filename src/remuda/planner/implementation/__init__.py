"""Implementation rules: the physical alternatives of each logical operator.

``implement`` calls the other modules; each has the rules of one kind of operator and their
requirements on the input.
"""
