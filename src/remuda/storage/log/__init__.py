"""The write-ahead log of a member: writing, reading, indexing, replaying, retiring segments."""
