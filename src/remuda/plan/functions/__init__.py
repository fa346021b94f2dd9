"""The catalogue of functions: names, argument types, result types and NULL rules.

``catalog`` joins the lists of the other modules, one for each kind of value; ``signatures`` has
the types of an entry. How a function is computed is in ``execution.evaluate``.
"""
