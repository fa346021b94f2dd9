"""The physical operators, one module each.

An operator advances over batches and tells its fragment when it must wait
(``remuda.execution.contract``). Operators that keep rows count their memory and spill to disk.
``remuda.execution.build`` makes them from the nodes of ``remuda.plan.physical``.
"""
