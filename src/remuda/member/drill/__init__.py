"""The native protocol of Apache Drill's clients on a member: queries, plans and metadata."""
