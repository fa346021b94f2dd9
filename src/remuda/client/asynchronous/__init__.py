"""The logic of the client as coroutines, and its asyncio face.

``client`` and ``map`` hold the operations that the blocking client runs as well. ``connections``
and ``line`` implement ``remuda.client.ports`` on an event loop. ``remuda.aio`` re-exports the
public names.
"""
