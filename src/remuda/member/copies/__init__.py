"""Copies of partitions on their way between members.

``giving`` and ``receiving`` are the two sides of a move, ``differences`` sends only the rows that a
former copy lacks, ``donor`` and ``donations`` bring back copies of a process that views have
dropped.
"""
