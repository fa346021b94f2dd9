"""Change streams and subscriptions.

``change_logs`` finds the changes of a map, ``change_retention`` decides how long versions stay,
``change_pages`` encodes them, ``subscriptions`` follows them for clients.
"""
