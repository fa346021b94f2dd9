"""Subqueries and LATERAL become joins."""
