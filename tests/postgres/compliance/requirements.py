"""The abilities that SQLAlchemy's dialect compliance suite tests, as its dialect has them on
PostgreSQL itself. SQLAlchemy's own file of them is no part of its package."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

# ruff: noqa: SIM905

ABILITIES = """
    aggregate_order_by array_type autocommit boolean_col_expressions
    check_constraint_reflection column_collation_reflection comment_reflection
    comment_reflection_full_unicode constraint_comment_reflection create_or_replace_view
    create_table_as ctes ctes_on_dml ctes_with_update_delete ctes_with_values date_historic
    datetime_historic datetime_interval datetime_timezone datetime_timezone_historic
    delete_from empty_inserts empty_inserts_executemany except_ expression_server_defaults
    fetch_expression fetch_first fetch_no_order_by fetch_ties
    float_or_double_precision_behaves_generically identity_columns identity_columns_standard
    implicit_default_schema index_ddl_if_exists index_reflects_included_columns
    indexes_with_expressions infinity_floats inline_check_constraint_reflection intersect
    isolation_level json_array_indexes json_type nullsordering
    order_by_label_with_expression percent_schema_names precision_generic_float_type
    precision_numerics_enotation_small precision_numerics_many_significant_digits
    precision_numerics_retains_significant_digits reflect_indexes_with_ascdesc
    reflect_indexes_with_expressions reflect_table_options reflect_tables_no_columns
    reflects_pk_names regexp_match regexp_replace savepoints server_defaults
    supports_bitwise_and supports_bitwise_not supports_bitwise_or supports_bitwise_shift
    supports_bitwise_xor supports_distinct_on table_ddl_if_exists table_value_constructor
    time_timezone timestamp_microseconds tuple_in unicode_ddl
    unique_constraints_reflect_as_index update_from uuid_data_type views window_functions
    window_range window_range_non_numeric window_range_numeric
    temporary_tables create_temp_table_as temporary_views temp_table_reflection has_temp_table
    temp_table_names temp_table_comment_reflection schemas schema_create_delete computed_columns
    computed_columns_stored computed_columns_default_persisted computed_columns_reflect_persisted
    foreign_keys foreign_key_ddl self_referential_foreign_keys
    foreign_key_constraint_reflection foreign_key_constraint_name_reflection
    cross_schema_fk_reflection fk_constraint_option_reflection_ondelete_noaction
    fk_constraint_option_reflection_ondelete_restrict
    fk_constraint_option_reflection_onupdate_restrict repeated_column_foreign_keys
    foreign_key_constraint_option_reflection_ondelete
    foreign_key_constraint_option_reflection_onupdate recursive_fk_cascade on_update_cascade
    deferrable_fks
""".split()

MISSING = """
    materialized_views
""".split()
"""Materialized views are refused. A name leaves this list when its statement is served."""


class Requirements(SuiteRequirements):
    def get_order_by_collation(self, _config: Any) -> str:
        return "POSIX"

    def get_isolation_levels(self, _config: Any) -> dict[str, Any]:
        levels = ["READ COMMITTED", "READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
        return {"default": "SERIALIZABLE", "supported": ["AUTOCOMMIT", *levels]}

    @property
    def async_dialect(self) -> Any:
        return exclusions.only_if(lambda config: config.db.dialect.is_async)


def _open(_: Requirements) -> Any:
    return exclusions.open()


def _closed(_: Requirements) -> Any:
    return exclusions.closed()


for _ability in ABILITIES:
    setattr(Requirements, _ability, property(_open))
for _ability in MISSING:
    setattr(Requirements, _ability, property(_closed))
