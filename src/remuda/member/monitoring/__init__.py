"""The small HTTP server that shows metrics and health.

``http_requests`` is its pure half and ``server`` its sockets. ``sources`` reads values from the
parts of the member when somebody asks, ``pages`` answers, ``wing`` starts and stops all of it.
"""
