"""The blocking client: each method runs the coroutine of ``asynchronous`` to its end.

``remuda`` offers these classes. ``background`` holds the event loop of listeners and change
streams; ``tool_access`` serves the DB-API, the gateway and Spark.
"""
