"""SQL: parsing (sqlglot), name resolution, typing, validation. Only this package uses sqlglot."""
