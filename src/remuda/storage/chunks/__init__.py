"""The rows of a map in columns: sealed chunks and the open tail, with their key index.

``chunk`` holds rows with begin and end timestamps; ``scan`` reads the rows of one timestamp,
``upkeep`` seals and compacts in slices.
"""
