"""The catalogs that clients and tools read: pg_catalog and information_schema.

Each module makes rows of the member's catalog. The columns of the relations are in
``remuda.catalog.system_relations``; the relations of the schema ``sys`` are in
``remuda.member.system``.
"""
