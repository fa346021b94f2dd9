"""Checks before rows of maps with unique indexes or foreign keys are stored: a transaction finds
rows, and writes guards besides its own rows. ``Transactions.commit`` asks for it,
and so do the statements of open transactions."""
