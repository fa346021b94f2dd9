"""Secondary indexes over chunks: sorted, hash and bitmap.

``index_set`` holds all indexes of one map, ``scan`` reads rows by them. ``keys`` gives values of
columns a form whose order is the order of the index.
"""
