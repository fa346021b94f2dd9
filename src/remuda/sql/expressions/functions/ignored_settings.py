"""Settings of PostgreSQL that are accepted, kept and shown, and change nothing here.

Most tell PostgreSQL's planner what to do. The planner of the grid chooses by its own estimates;
hints in comments steer it where they must.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# name, default, then: bool, number, or the words that the setting takes
_ROWS: Final = """
backslash_quote safe_encoding safe_encoding on off
check_function_bodies on bool
client_connection_check_interval 0 number
constraint_exclusion partition partition on off
cpu_index_tuple_cost 0.005 number
cpu_operator_cost 0.0025 number
cpu_tuple_cost 0.01 number
cursor_tuple_fraction 0.1 number
default_statistics_target 100 number
default_table_access_method heap heap
default_toast_compression pglz pglz lz4
effective_cache_size 4GB number
enable_async_append on bool
enable_bitmapscan on bool
enable_gathermerge on bool
enable_hashagg on bool
enable_hashjoin on bool
enable_incremental_sort on bool
enable_indexonlyscan on bool
enable_indexscan on bool
enable_material on bool
enable_memoize on bool
enable_mergejoin on bool
enable_nestloop on bool
enable_parallel_append on bool
enable_parallel_hash on bool
enable_partition_pruning on bool
enable_partitionwise_aggregate off bool
enable_partitionwise_join off bool
enable_seqscan on bool
enable_sort on bool
enable_tidscan on bool
escape_string_warning on bool
force_parallel_mode off off on regress
from_collapse_limit 8 number
geqo on bool
geqo_effort 5 number
geqo_generations 0 number
geqo_pool_size 0 number
geqo_seed 0 number
geqo_selection_bias 2 number
geqo_threshold 12 number
hash_mem_multiplier 2 number
jit_above_cost 100000 number
jit_inline_above_cost 500000 number
jit_optimize_above_cost 500000 number
join_collapse_limit 8 number
maintenance_work_mem 64MB number
max_parallel_maintenance_workers 2 number
max_parallel_workers 8 number
max_parallel_workers_per_gather 2 number
min_parallel_index_scan_size 512kB number
min_parallel_table_scan_size 8MB number
parallel_leader_participation on bool
parallel_setup_cost 1000 number
parallel_tuple_cost 0.1 number
password_encryption scram-sha-256 scram-sha-256
plan_cache_mode auto auto force_generic_plan force_custom_plan
quote_all_identifiers off bool
random_page_cost 4 number
recursive_worktable_factor 10 number
row_security on bool
seq_page_cost 1 number
tcp_keepalives_count 0 number
tcp_keepalives_idle 0 number
tcp_keepalives_interval 0 number
tcp_user_timeout 0 number
temp_buffers 8MB number
vacuum_cost_delay 0 number
work_mem 4MB number
"""
BOOL: Final = ("bool",)
NUMBER: Final = ("number",)


@dataclass(frozen=True, slots=True)
class IgnoredSetting:
    """``values``: ``BOOL``, ``NUMBER`` (a unit may follow), or the words that it takes."""

    name: str
    default: str
    values: tuple[str, ...]


def _parsed(line: str) -> IgnoredSetting:
    name, default, *values = line.split()
    return IgnoredSetting(name, default, tuple(values))


IGNORED: Final = tuple(_parsed(line) for line in _ROWS.strip().splitlines())
