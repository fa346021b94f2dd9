"""Statements for clients of Drill: the columns of answers, and the abilities of the server."""
