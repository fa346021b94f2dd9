"""Scalar expressions over Arrow batches.

``compile`` turns an expression into closures, and ``kernel`` defines their shapes. The other
modules implement the functions, one subject each: numbers, text, dates, JSON, arrays.
"""
