"""The shell of the write-ahead log.

``writer`` and ``group`` put records into files and sync them, ``checkpoint`` and ``image`` shorten
the log, ``replay`` reads it at a start. The formats are in ``remuda.storage``, rows and their
replay into stores in ``remuda.snapshot``.
"""
