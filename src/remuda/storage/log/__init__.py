"""The write-ahead log of a member.

``writer`` decides on groups and segments, and ``files`` performs that on disk. ``reader`` reads
records and finds damage, ``replay`` turns them into steps for the stores, and ``retention`` decides
how long segments stay. The shell is ``remuda.member.journal``.
"""
