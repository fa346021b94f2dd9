"""The translation of relational algebra to Spark SQL, for statements that run on Spark.

``relations`` writes one SELECT per operator, and ``expressions`` writes the expressions that Spark
computes exactly as the grid does. ``refusal`` raises the error for a statement that cannot run on
Spark with the same answer.
"""
