"""COPY's forms of rows: text, CSV and PostgreSQL's binary format, from bytes to columns and back.

Pure: bytes in, columns out, and the other way round. The door for PostgreSQL's clients and the
statements of members use the same forms (decision 0080).
"""
