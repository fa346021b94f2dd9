"""Statements that Spark runs for the grid: its services, and a statement's way through one."""
