"""The physical operators, one module each.

An operator advances over batches and tells its fragment when it must wait
(``remuda.execution.contract``). Operators that keep rows count their memory and spill to disk.
A module registers the function that builds its operator from a node of ``remuda.plan.physical``
(``remuda.execution.operator_builders``).
"""
