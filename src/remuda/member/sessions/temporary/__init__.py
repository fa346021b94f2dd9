"""Temporary tables of a session: their definitions, and their rows at the member of the session."""
