"""``remuda.start``: a whole cluster as child processes of this one.

``member_command`` starts a process, ``ready`` reads the line that it prints when it serves,
``cluster`` ends all of them.
"""
