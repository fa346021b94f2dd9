"""The interactive shell ``remuda sql``, in psql's manner.

``scanner`` cuts the input into statements and backslash commands, ``run`` carries them out in
turn, and ``commands`` has each backslash command under its name. ``session`` runs statements and
reports errors. ``editing`` reads lines from a terminal.
"""
