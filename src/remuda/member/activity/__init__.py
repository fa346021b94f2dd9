"""Relations that show operators the work on a cluster, and requests that end it.

``clients`` describes connections, ``lock_rows`` locks; ``report`` asks all members for both in one
round, and ``relations`` makes system relations of the answers. ``ending`` cancels statements and
transactions and ends connections, on this member and on others; ``draining`` has a member leave.
"""
