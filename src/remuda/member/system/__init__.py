"""The work of the members now, as relations of the schema ``sys``.

``system_state`` and ``activity_report`` ask all members in one round (``base.round``);
``system_relations``, ``query_relations`` and ``activity_relations`` make rows of the answers,
and ``lock_pages`` those of locks.
"""
