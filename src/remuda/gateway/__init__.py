"""Faces for other protocols. They reach members only as a client.

So far one: the part of Apache Drill's REST interface that its Python clients use (``server``).
"""
