"""Settings of PostgreSQL that are accepted, kept and shown, and change nothing here.

Most tell PostgreSQL's planner what to do. The planner of the grid chooses by its own estimates;
hints in comments steer it where they must.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# name, default, then: bool, number, or the words that the setting takes
_ROWS: Final = """
array_nulls on on
backend_flush_after 0 number
backslash_quote safe_encoding safe_encoding on off
check_function_bodies on bool
client_connection_check_interval 0 number
commit_delay 0 number
commit_siblings 5 number
compute_query_id auto auto regress on off
constraint_exclusion partition partition on off
cpu_index_tuple_cost 0.005 number
cpu_operator_cost 0.0025 number
cpu_tuple_cost 0.01 number
cursor_tuple_fraction 0.1 number
deadlock_timeout 1s number
debug_pretty_print on bool
debug_print_parse off bool
debug_print_plan off bool
debug_print_rewritten off bool
default_statistics_target 100 number
default_table_access_method heap heap
default_text_search_config pg_catalog.simple pg_catalog.simple simple pg_catalog.english english
default_toast_compression pglz pglz lz4
effective_cache_size 4GB number
effective_io_concurrency 1 number
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
exit_on_error off off
force_parallel_mode off off on regress
from_collapse_limit 8 number
geqo on bool
geqo_effort 5 number
geqo_generations 0 number
geqo_pool_size 0 number
geqo_seed 0 number
geqo_selection_bias 2 number
geqo_threshold 12 number
gin_fuzzy_search_limit 0 number
gin_pending_list_limit 4MB number
hash_mem_multiplier 2 number
idle_session_timeout 0 0
jit_above_cost 100000 number
jit_expressions on bool
jit_inline_above_cost 500000 number
jit_optimize_above_cost 500000 number
jit_tuple_deforming on bool
join_collapse_limit 8 number
lc_messages C C POSIX en_US.UTF-8 en_US.utf8 C.UTF-8
lc_monetary C C POSIX C.UTF-8
lc_numeric C C POSIX C.UTF-8
lc_time C C POSIX C.UTF-8 en_US.UTF-8
log_duration off bool
log_error_verbosity default terse default verbose
log_lock_waits off bool
log_min_duration_sample -1 number
log_min_duration_statement -1 number
log_parameter_max_length -1 number
log_parameter_max_length_on_error 0 number
log_statement none none ddl mod all
log_statement_stats off bool
log_temp_files -1 number
logical_decoding_work_mem 64MB number
maintenance_io_concurrency 10 number
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
session_replication_role origin origin
stats_fetch_consistency cache none cache snapshot
synchronous_commit on on off local remote_write remote_apply
tcp_keepalives_count 0 number
tcp_keepalives_idle 0 number
tcp_keepalives_interval 0 number
tcp_user_timeout 0 number
temp_buffers 8MB number
temp_file_limit -1 number
trace_notify off bool
trace_sort off bool
track_activities on bool
track_counts on bool
track_functions none none pl all
track_io_timing off bool
track_wal_io_timing off bool
transform_null_equals off off
vacuum_cost_delay 0 number
vacuum_cost_limit 200 number
vacuum_cost_page_dirty 20 number
vacuum_cost_page_hit 1 number
vacuum_cost_page_miss 2 number
vacuum_failsafe_age 1600000000 number
vacuum_freeze_min_age 50000000 number
vacuum_freeze_table_age 150000000 number
vacuum_multixact_failsafe_age 1600000000 number
vacuum_multixact_freeze_min_age 5000000 number
vacuum_multixact_freeze_table_age 150000000 number
wal_compression off pglz lz4 zstd on off
wal_sender_timeout 1min number
wal_skip_threshold 2MB number
work_mem 4MB number
xmlbinary base64 base64 hex
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
