"""The shell of ``remuda.query.registry``: queries that run on several members.

``queries`` sends fragments out and receives theirs, ``fragments`` runs them, ``cursors`` keeps
results until a client has read them, ``short_plans`` runs small plans without fragments.
"""
