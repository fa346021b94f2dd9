"""Faces over HTTP. They reach members only as a client.

The part of Apache Drill's REST interface that its Python clients use, and the console, a web page
(``console``). ``server`` has both.
"""
