"""One statement, from its text to a plan and from rows to an answer.

``planning`` parses, binds and plans statements and caches their plans. ``client_session`` holds the
settings of a client, which travel with its statements. ``answers`` and its neighbours make the
results of SHOW, DESCRIBE and EXPLAIN; ``system`` makes the catalogs.
"""
