"""Relational algebra as Spark SQL, for statements that run on Spark instead of the grid."""
