"""The MEMO of the search: groups of equivalent expressions, their costs and the cheapest plan.

``operators`` makes the groups, ``nodes`` has the common parts of physical nodes, ``search``
finds the cheapest plan that meets a requirement, ``access``, ``index_paths`` and ``lookup_paths``
find the ways to the rows of a map.
"""
