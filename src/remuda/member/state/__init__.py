"""The memory of a member beside its maps: values that ``base.core`` holds for all rooms.

Nothing here sends a message or knows another room. Each module is one value with its rules, such as
the constraints of maps, the locks that are shown to operators, or the rows of a transaction.
"""
