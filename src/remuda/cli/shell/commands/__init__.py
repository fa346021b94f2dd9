"""The backslash commands. Each module has one section of their list, in its ``COMMANDS``.

``catalogue`` says what a command is, and ``index`` finds one by its name.
"""
