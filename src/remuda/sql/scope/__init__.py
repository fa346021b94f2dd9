"""The names that a statement can use: columns, relations, routines and types.

Every binding function takes ``context``; ``statements`` are the results of parsing and binding. An
unknown name is an error with a suggestion and its place in the text.
"""
