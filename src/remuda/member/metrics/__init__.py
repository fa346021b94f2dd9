"""Values that a member counts and times, in the forms of Prometheus.

``families`` holds the values and writes them as text. ``operations`` and ``statements`` count
requests, ``loop_delay`` and ``collections`` watch the process. The server that shows them is
``monitoring``.
"""
