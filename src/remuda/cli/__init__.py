"""The command line and the interactive shell.

``main`` finds the command, and each ``*_command`` module runs one. ``session`` and ``output`` run
statements and print results. The commands reach members only through ``remuda.client``.
"""
