"""Binds INSERT, UPDATE, DELETE, MERGE, and expressions that compute one entry anew.

``changes`` and ``modify`` bind the statements; ``conflict`` and ``returning`` bind their clauses.
"""
