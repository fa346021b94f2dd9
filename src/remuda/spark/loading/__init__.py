"""Loads files into a map: a Spark job whose tasks read pieces of the files with Arrow.

``loader`` is the entry; ``source`` finds the columns, ``splits`` cuts the files, ``read_files``
reads one split.
"""
