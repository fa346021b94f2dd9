"""Codecs of the files that outlive a process: log segments and snapshot objects. Pure.

``records`` lists the records of a log and ``record_codec`` encodes them; ``segment`` frames them in
files. ``manifest`` and ``rows_object`` are the objects of a snapshot. docs/formats.md has the
numbers of all formats.
"""
