"""Rows of maps into Spark and DataFrames into maps, with types, options and predicates.

``reader`` reads a map or a query, ``writer`` stages rows and commits once, ``cut_reader`` reads a
cut of a snapshot without a cluster.
"""
