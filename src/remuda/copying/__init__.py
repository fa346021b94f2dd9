"""COPY's forms of rows: text, CSV and PostgreSQL's binary format, from bytes to columns and back.

Pure: bytes in, record batches out, and the other way round. The door for PostgreSQL's clients, the
members and Remuda's own client use the same forms (decision 0080).
"""
