"""Commit protocols, locks and cuts as pure state machines.

``near`` coordinates a transaction and ``parts`` keeps its parts on the members of their partitions.
``staged_commit`` commits bulk writes, ``locks`` and ``deadlock`` serve pessimistic transactions,
``cut`` models consistent cuts. The shells are ``remuda.member.transactions`` and
``remuda.member.commits``.
"""
