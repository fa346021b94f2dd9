"""Results of statements as text and data: tables, records, CSV, JSON, Markdown, Arrow, Parquet.

A writer streams: none holds a whole result. ``aligned`` has psql's tables.
"""
