"""One SQL statement from its text to its end.

``statements`` receives it, ``plans`` keeps plans, ``initiated_queries`` runs them, ``changes`` and
``write_statements`` apply DML, ``definitions`` and ``index_service`` apply DDL, ``control``
cancels.
"""
