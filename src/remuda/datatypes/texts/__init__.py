"""Values from text and to text, in the forms of PostgreSQL.

``text`` reads values as CAST does, ``valuetext`` writes them, ``arraytext`` has the form of ARRAY
and ROW.
"""
