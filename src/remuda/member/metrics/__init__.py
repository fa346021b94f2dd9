"""What one member measures, and the small HTTP server that shows it.

``families`` holds the values and writes them in Prometheus' text format. ``operations`` and
``statements`` count requests and time them, ``loop_delay`` and ``collections`` watch the process,
and ``sources`` reads everything else from the parts of the member when somebody asks.
``http_requests`` is the pure half of the server, ``server`` its sockets.
"""
