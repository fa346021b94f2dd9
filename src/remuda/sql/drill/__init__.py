"""The SQL of Drill's clients, rewritten as SQL of this grid.

``dialect`` rewrites a statement; ``names`` and ``schema`` name catalogs and schemas as Drill does.
"""
