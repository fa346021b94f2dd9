"""Values of programs: objects, rows, tables and conditions, and their physical form in the engine.

``objects`` turns keys and values into rows and back; ``inference`` finds the schema of an
undeclared map; ``predicate`` is ``remuda.col``.
"""
