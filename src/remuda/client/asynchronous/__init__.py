"""The client for asyncio, and the logic of the blocking one.

``remuda.aio`` offers these classes. Each coroutine is written once; ``blocking`` runs it to its
end.
"""
