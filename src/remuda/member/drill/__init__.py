"""The native protocol of Apache Drill's clients on a member, which Remuda's own clients speak, too.

``run_queries`` serves RUN_QUERY of both. For Drill's clients alone, ``server`` describes the
server, ``metadata`` lists maps and columns in Drill's terms, and ``plans`` answers requests for the
plan of a query. Statements take the path of ``member.statements``.
"""
