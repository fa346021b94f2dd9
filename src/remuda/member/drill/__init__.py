"""The native protocol of Apache Drill's clients on a member.

``server`` describes the server to them, ``metadata`` lists maps and columns in Drill's terms, and
``plans`` answers requests for the plan of a query. Statements take the path of
``member.statements``.
"""
