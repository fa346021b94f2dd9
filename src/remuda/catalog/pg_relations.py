"""The relations of PostgreSQL 15's ``pg_catalog``: names, OIDs, columns and their types.

Clients join them and name their columns, also of those that are always empty here. ``view`` in
place of an OID: PostgreSQL gives views other numbers in each database. ``!``: never NULL.
"""

from __future__ import annotations

from typing import Final

PG_RELATIONS: Final = """
pg_aggregate 2600: aggfnoid regproc!, aggkind char!, aggnumdirectargs int2!, aggtransfn regproc!,
    aggfinalfn regproc!, aggcombinefn regproc!, aggserialfn regproc!, aggdeserialfn regproc!,
    aggmtransfn regproc!, aggminvtransfn regproc!, aggmfinalfn regproc!, aggfinalextra bool!,
    aggmfinalextra bool!, aggfinalmodify char!, aggmfinalmodify char!, aggsortop oid!, aggtranstype
    oid!, aggtransspace int4!, aggmtranstype oid!, aggmtransspace int4!, agginitval text,
    aggminitval text
pg_am 2601: oid oid!, amname name!, amhandler regproc!, amtype char!
pg_amop 2602: oid oid!, amopfamily oid!, amoplefttype oid!, amoprighttype oid!, amopstrategy int2!,
    amoppurpose char!, amopopr oid!, amopmethod oid!, amopsortfamily oid!
pg_amproc 2603: oid oid!, amprocfamily oid!, amproclefttype oid!, amprocrighttype oid!, amprocnum
    int2!, amproc regproc!
pg_attrdef 2604: oid oid!, adrelid oid!, adnum int2!, adbin pg_node_tree!
pg_attribute 1249: attrelid oid!, attname name!, atttypid oid!, attstattarget int4!, attlen int2!,
    attnum int2!, attndims int4!, attcacheoff int4!, atttypmod int4!, attbyval bool!, attalign
    char!, attstorage char!, attcompression char!, attnotnull bool!, atthasdef bool!, atthasmissing
    bool!, attidentity char!, attgenerated char!, attisdropped bool!, attislocal bool!, attinhcount
    int4!, attcollation oid!, attacl aclitem[], attoptions text[], attfdwoptions text[],
    attmissingval anyarray
pg_auth_members 1261: roleid oid!, member oid!, grantor oid!, admin_option bool!
pg_authid 1260: oid oid!, rolname name!, rolsuper bool!, rolinherit bool!, rolcreaterole bool!,
    rolcreatedb bool!, rolcanlogin bool!, rolreplication bool!, rolbypassrls bool!, rolconnlimit
    int4!, rolpassword text, rolvaliduntil timestamptz
pg_available_extension_versions view: name name, version text, installed bool, superuser bool,
    trusted bool, relocatable bool, schema name, requires name[], comment text
pg_available_extensions view: name name, default_version text, installed_version text, comment text
pg_backend_memory_contexts view: name text, ident text, parent text, level int4, total_bytes int8,
    total_nblocks int8, free_bytes int8, free_chunks int8, used_bytes int8
pg_cast 2605: oid oid!, castsource oid!, casttarget oid!, castfunc oid!, castcontext char!,
    castmethod char!
pg_class 1259: oid oid!, relname name!, relnamespace oid!, reltype oid!, reloftype oid!, relowner
    oid!, relam oid!, relfilenode oid!, reltablespace oid!, relpages int4!, reltuples float4!,
    relallvisible int4!, reltoastrelid oid!, relhasindex bool!, relisshared bool!, relpersistence
    char!, relkind char!, relnatts int2!, relchecks int2!, relhasrules bool!, relhastriggers bool!,
    relhassubclass bool!, relrowsecurity bool!, relforcerowsecurity bool!, relispopulated bool!,
    relreplident char!, relispartition bool!, relrewrite oid!, relfrozenxid xid!, relminmxid xid!,
    relacl aclitem[], reloptions text[], relpartbound pg_node_tree
pg_collation 3456: oid oid!, collname name!, collnamespace oid!, collowner oid!, collprovider char!,
    collisdeterministic bool!, collencoding int4!, collcollate text, collctype text, colliculocale
    text, collversion text
pg_config view: name text, setting text
pg_constraint 2606: oid oid!, conname name!, connamespace oid!, contype char!, condeferrable bool!,
    condeferred bool!, convalidated bool!, conrelid oid!, contypid oid!, conindid oid!, conparentid
    oid!, confrelid oid!, confupdtype char!, confdeltype char!, confmatchtype char!, conislocal
    bool!, coninhcount int4!, connoinherit bool!, conkey int2[], confkey int2[], conpfeqop oid[],
    conppeqop oid[], conffeqop oid[], confdelsetcols int2[], conexclop oid[], conbin pg_node_tree
pg_conversion 2607: oid oid!, conname name!, connamespace oid!, conowner oid!, conforencoding int4!,
    contoencoding int4!, conproc regproc!, condefault bool!
pg_cursors view: name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool,
    creation_time timestamptz
pg_database 1262: oid oid!, datname name!, datdba oid!, encoding int4!, datlocprovider char!,
    datistemplate bool!, datallowconn bool!, datconnlimit int4!, datfrozenxid xid!, datminmxid xid!,
    dattablespace oid!, datcollate text!, datctype text!, daticulocale text, datcollversion text,
    datacl aclitem[]
pg_db_role_setting 2964: setdatabase oid!, setrole oid!, setconfig text[]
pg_default_acl 826: oid oid!, defaclrole oid!, defaclnamespace oid!, defaclobjtype char!, defaclacl
    aclitem[]!
pg_depend 2608: classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!,
    refobjsubid int4!, deptype char!
pg_description 2609: objoid oid!, classoid oid!, objsubid int4!, description text!
pg_enum 3501: oid oid!, enumtypid oid!, enumsortorder float4!, enumlabel name!
pg_event_trigger 3466: oid oid!, evtname name!, evtevent name!, evtowner oid!, evtfoid oid!,
    evtenabled char!, evttags text[]
pg_extension 3079: oid oid!, extname name!, extowner oid!, extnamespace oid!, extrelocatable bool!,
    extversion text!, extconfig oid[], extcondition text[]
pg_file_settings view: sourcefile text, sourceline int4, seqno int4, name text, setting text,
    applied bool, error text
pg_foreign_data_wrapper 2328: oid oid!, fdwname name!, fdwowner oid!, fdwhandler oid!, fdwvalidator
    oid!, fdwacl aclitem[], fdwoptions text[]
pg_foreign_server 1417: oid oid!, srvname name!, srvowner oid!, srvfdw oid!, srvtype text,
    srvversion text, srvacl aclitem[], srvoptions text[]
pg_foreign_table 3118: ftrelid oid!, ftserver oid!, ftoptions text[]
pg_group view: groname name, grosysid oid, grolist oid[]
pg_hba_file_rules view: line_number int4, type text, database text[], user_name text[], address
    text, netmask text, auth_method text, options text[], error text
pg_ident_file_mappings view: line_number int4, map_name text, sys_name text, pg_username text, error
    text
pg_index 2610: indexrelid oid!, indrelid oid!, indnatts int2!, indnkeyatts int2!, indisunique bool!,
    indnullsnotdistinct bool!, indisprimary bool!, indisexclusion bool!, indimmediate bool!,
    indisclustered bool!, indisvalid bool!, indcheckxmin bool!, indisready bool!, indislive bool!,
    indisreplident bool!, indkey int2vector!, indcollation oidvector!, indclass oidvector!,
    indoption int2vector!, indexprs pg_node_tree, indpred pg_node_tree
pg_indexes view: schemaname name, tablename name, indexname name, tablespace name, indexdef text
pg_inherits 2611: inhrelid oid!, inhparent oid!, inhseqno int4!, inhdetachpending bool!
pg_init_privs 3394: objoid oid!, classoid oid!, objsubid int4!, privtype char!, initprivs aclitem[]!
pg_language 2612: oid oid!, lanname name!, lanowner oid!, lanispl bool!, lanpltrusted bool!,
    lanplcallfoid oid!, laninline oid!, lanvalidator oid!, lanacl aclitem[]
pg_largeobject 2613: loid oid!, pageno int4!, data bytea!
pg_largeobject_metadata 2995: oid oid!, lomowner oid!, lomacl aclitem[]
pg_locks view: locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text,
    transactionid xid, classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4,
    mode text, granted bool, fastpath bool, waitstart timestamptz
pg_matviews view: schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes
    bool, ispopulated bool, definition text
pg_namespace 2615: oid oid!, nspname name!, nspowner oid!, nspacl aclitem[]
pg_opclass 2616: oid oid!, opcmethod oid!, opcname name!, opcnamespace oid!, opcowner oid!,
    opcfamily oid!, opcintype oid!, opcdefault bool!, opckeytype oid!
pg_operator 2617: oid oid!, oprname name!, oprnamespace oid!, oprowner oid!, oprkind char!,
    oprcanmerge bool!, oprcanhash bool!, oprleft oid!, oprright oid!, oprresult oid!, oprcom oid!,
    oprnegate oid!, oprcode regproc!, oprrest regproc!, oprjoin regproc!
pg_opfamily 2753: oid oid!, opfmethod oid!, opfname name!, opfnamespace oid!, opfowner oid!
pg_parameter_acl 6243: oid oid!, parname text!, paracl aclitem[]
pg_partitioned_table 3350: partrelid oid!, partstrat char!, partnatts int2!, partdefid oid!,
    partattrs int2vector!, partclass oidvector!, partcollation oidvector!, partexprs pg_node_tree
pg_policies view: schemaname name, tablename name, policyname name, permissive text, roles name[],
    cmd text, qual text, with_check text
pg_policy 3256: oid oid!, polname name!, polrelid oid!, polcmd char!, polpermissive bool!, polroles
    oid[]!, polqual pg_node_tree, polwithcheck pg_node_tree
pg_prepared_statements view: name text, statement text, prepare_time timestamptz, parameter_types
    regtype[], from_sql bool, generic_plans int8, custom_plans int8
pg_prepared_xacts view: transaction xid, gid text, prepared timestamptz, owner name, database name
pg_proc 1255: oid oid!, proname name!, pronamespace oid!, proowner oid!, prolang oid!, procost
    float4!, prorows float4!, provariadic oid!, prosupport regproc!, prokind char!, prosecdef bool!,
    proleakproof bool!, proisstrict bool!, proretset bool!, provolatile char!, proparallel char!,
    pronargs int2!, pronargdefaults int2!, prorettype oid!, proargtypes oidvector!, proallargtypes
    oid[], proargmodes char[], proargnames text[], proargdefaults pg_node_tree, protrftypes oid[],
    prosrc text!, probin text, prosqlbody pg_node_tree, proconfig text[], proacl aclitem[]
pg_publication 6104: oid oid!, pubname name!, pubowner oid!, puballtables bool!, pubinsert bool!,
    pubupdate bool!, pubdelete bool!, pubtruncate bool!, pubviaroot bool!
pg_publication_namespace 6237: oid oid!, pnpubid oid!, pnnspid oid!
pg_publication_rel 6106: oid oid!, prpubid oid!, prrelid oid!, prqual pg_node_tree, prattrs
    int2vector
pg_publication_tables view: pubname name, schemaname name, tablename name, attnames name[],
    rowfilter text
pg_range 3541: rngtypid oid!, rngsubtype oid!, rngmultitypid oid!, rngcollation oid!, rngsubopc
    oid!, rngcanonical regproc!, rngsubdiff regproc!
pg_replication_origin 6000: roident oid!, roname text!
pg_replication_origin_status view: local_id oid, external_id text, remote_lsn pg_lsn, local_lsn
    pg_lsn
pg_replication_slots view: slot_name name, plugin name, slot_type text, datoid oid, database name,
    temporary bool, active bool, active_pid int4, xmin xid, catalog_xmin xid, restart_lsn pg_lsn,
    confirmed_flush_lsn pg_lsn, wal_status text, safe_wal_size int8, two_phase bool
pg_rewrite 2618: oid oid!, rulename name!, ev_class oid!, ev_type char!, ev_enabled char!,
    is_instead bool!, ev_qual pg_node_tree!, ev_action pg_node_tree!
pg_roles view: rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool,
    rolcanlogin bool, rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil
    timestamptz, rolbypassrls bool, rolconfig text[], oid oid
pg_rules view: schemaname name, tablename name, rulename name, definition text
pg_seclabel 3596: objoid oid!, classoid oid!, objsubid int4!, provider text!, label text!
pg_seclabels view: objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname
    text, provider text, label text
pg_sequence 2224: seqrelid oid!, seqtypid oid!, seqstart int8!, seqincrement int8!, seqmax int8!,
    seqmin int8!, seqcache int8!, seqcycle bool!
pg_sequences view: schemaname name, sequencename name, sequenceowner name, data_type regtype,
    start_value int8, min_value int8, max_value int8, increment_by int8, cycle bool, cache_size
    int8, last_value int8
pg_settings view: name text, setting text, unit text, category text, short_desc text, extra_desc
    text, context text, vartype text, source text, min_val text, max_val text, enumvals text[],
    boot_val text, reset_val text, sourcefile text, sourceline int4, pending_restart bool
pg_shadow view: usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool,
    usebypassrls bool, passwd text, valuntil timestamptz, useconfig text[]
pg_shdepend 1214: dbid oid!, classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid
    oid!, deptype char!
pg_shdescription 2396: objoid oid!, classoid oid!, description text!
pg_shmem_allocations view: name text, off int8, size int8, allocated_size int8
pg_shseclabel 3592: objoid oid!, classoid oid!, provider text!, label text!
pg_stat_activity view: datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename
    name, application_name text, client_addr inet, client_hostname text, client_port int4,
    backend_start timestamptz, xact_start timestamptz, query_start timestamptz, state_change
    timestamptz, wait_event_type text, wait_event text, state text, backend_xid xid, backend_xmin
    xid, query_id int8, query text, backend_type text
pg_stat_all_indexes view: relid oid, indexrelid oid, schemaname name, relname name, indexrelname
    name, idx_scan int8, idx_tup_read int8, idx_tup_fetch int8
pg_stat_all_tables view: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8,
    idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd
    int8, n_live_tup int8, n_dead_tup int8, n_mod_since_analyze int8, n_ins_since_vacuum int8,
    last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze
    timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count
    int8
pg_stat_archiver view: archived_count int8, last_archived_wal text, last_archived_time timestamptz,
    failed_count int8, last_failed_wal text, last_failed_time timestamptz, stats_reset timestamptz
pg_stat_bgwriter view: checkpoints_timed int8, checkpoints_req int8, checkpoint_write_time float8,
    checkpoint_sync_time float8, buffers_checkpoint int8, buffers_clean int8, maxwritten_clean int8,
    buffers_backend int8, buffers_backend_fsync int8, buffers_alloc int8, stats_reset timestamptz
pg_stat_database view: datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback
    int8, blks_read int8, blks_hit int8, tup_returned int8, tup_fetched int8, tup_inserted int8,
    tup_updated int8, tup_deleted int8, conflicts int8, temp_files int8, temp_bytes int8, deadlocks
    int8, checksum_failures int8, checksum_last_failure timestamptz, blk_read_time float8,
    blk_write_time float8, session_time float8, active_time float8, idle_in_transaction_time float8,
    sessions int8, sessions_abandoned int8, sessions_fatal int8, sessions_killed int8, stats_reset
    timestamptz
pg_stat_database_conflicts view: datid oid, datname name, confl_tablespace int8, confl_lock int8,
    confl_snapshot int8, confl_bufferpin int8, confl_deadlock int8
pg_stat_gssapi view: pid int4, gss_authenticated bool, principal text, encrypted bool
pg_stat_progress_analyze view: pid int4, datid oid, datname name, relid oid, phase text,
    sample_blks_total int8, sample_blks_scanned int8, ext_stats_total int8, ext_stats_computed int8,
    child_tables_total int8, child_tables_done int8, current_child_table_relid oid
pg_stat_progress_basebackup view: pid int4, phase text, backup_total int8, backup_streamed int8,
    tablespaces_total int8, tablespaces_streamed int8
pg_stat_progress_cluster view: pid int4, datid oid, datname name, relid oid, command text, phase
    text, cluster_index_relid oid, heap_tuples_scanned int8, heap_tuples_written int8,
    heap_blks_total int8, heap_blks_scanned int8, index_rebuild_count int8
pg_stat_progress_copy view: pid int4, datid oid, datname name, relid oid, command text, type text,
    bytes_processed int8, bytes_total int8, tuples_processed int8, tuples_excluded int8
pg_stat_progress_create_index view: pid int4, datid oid, datname name, relid oid, index_relid oid,
    command text, phase text, lockers_total int8, lockers_done int8, current_locker_pid int8,
    blocks_total int8, blocks_done int8, tuples_total int8, tuples_done int8, partitions_total int8,
    partitions_done int8
pg_stat_progress_vacuum view: pid int4, datid oid, datname name, relid oid, phase text,
    heap_blks_total int8, heap_blks_scanned int8, heap_blks_vacuumed int8, index_vacuum_count int8,
    max_dead_tuples int8, num_dead_tuples int8
pg_stat_recovery_prefetch view: stats_reset timestamptz, prefetch int8, hit int8, skip_init int8,
    skip_new int8, skip_fpw int8, skip_rep int8, wal_distance int4, block_distance int4, io_depth
    int4
pg_stat_replication view: pid int4, usesysid oid, usename name, application_name text, client_addr
    inet, client_hostname text, client_port int4, backend_start timestamptz, backend_xmin xid, state
    text, sent_lsn pg_lsn, write_lsn pg_lsn, flush_lsn pg_lsn, replay_lsn pg_lsn, write_lag
    interval, flush_lag interval, replay_lag interval, sync_priority int4, sync_state text,
    reply_time timestamptz
pg_stat_replication_slots view: slot_name text, spill_txns int8, spill_count int8, spill_bytes int8,
    stream_txns int8, stream_count int8, stream_bytes int8, total_txns int8, total_bytes int8,
    stats_reset timestamptz
pg_stat_slru view: name text, blks_zeroed int8, blks_hit int8, blks_read int8, blks_written int8,
    blks_exists int8, flushes int8, truncates int8, stats_reset timestamptz
pg_stat_ssl view: pid int4, ssl bool, version text, cipher text, bits int4, client_dn text,
    client_serial numeric, issuer_dn text
pg_stat_subscription view: subid oid, subname name, pid int4, relid oid, received_lsn pg_lsn,
    last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, latest_end_lsn pg_lsn,
    latest_end_time timestamptz
pg_stat_subscription_stats view: subid oid, subname name, apply_error_count int8, sync_error_count
    int8, stats_reset timestamptz
pg_stat_sys_indexes view: relid oid, indexrelid oid, schemaname name, relname name, indexrelname
    name, idx_scan int8, idx_tup_read int8, idx_tup_fetch int8
pg_stat_sys_tables view: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8,
    idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd
    int8, n_live_tup int8, n_dead_tup int8, n_mod_since_analyze int8, n_ins_since_vacuum int8,
    last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze
    timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count
    int8
pg_stat_user_functions view: funcid oid, schemaname name, funcname name, calls int8, total_time
    float8, self_time float8
pg_stat_user_indexes view: relid oid, indexrelid oid, schemaname name, relname name, indexrelname
    name, idx_scan int8, idx_tup_read int8, idx_tup_fetch int8
pg_stat_user_tables view: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read
    int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8,
    n_tup_hot_upd int8, n_live_tup int8, n_dead_tup int8, n_mod_since_analyze int8,
    n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze
    timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8,
    analyze_count int8, autoanalyze_count int8
pg_stat_wal view: wal_records int8, wal_fpi int8, wal_bytes numeric, wal_buffers_full int8,
    wal_write int8, wal_sync int8, wal_write_time float8, wal_sync_time float8, stats_reset
    timestamptz
pg_stat_wal_receiver view: pid int4, status text, receive_start_lsn pg_lsn, receive_start_tli int4,
    written_lsn pg_lsn, flushed_lsn pg_lsn, received_tli int4, last_msg_send_time timestamptz,
    last_msg_receipt_time timestamptz, latest_end_lsn pg_lsn, latest_end_time timestamptz, slot_name
    text, sender_host text, sender_port int4, conninfo text
pg_stat_xact_all_tables view: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read
    int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8,
    n_tup_hot_upd int8
pg_stat_xact_sys_tables view: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read
    int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8,
    n_tup_hot_upd int8
pg_stat_xact_user_functions view: funcid oid, schemaname name, funcname name, calls int8, total_time
    float8, self_time float8
pg_stat_xact_user_tables view: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read
    int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8,
    n_tup_hot_upd int8
pg_statio_all_indexes view: relid oid, indexrelid oid, schemaname name, relname name, indexrelname
    name, idx_blks_read int8, idx_blks_hit int8
pg_statio_all_sequences view: relid oid, schemaname name, relname name, blks_read int8, blks_hit
    int8
pg_statio_all_tables view: relid oid, schemaname name, relname name, heap_blks_read int8,
    heap_blks_hit int8, idx_blks_read int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit
    int8, tidx_blks_read int8, tidx_blks_hit int8
pg_statio_sys_indexes view: relid oid, indexrelid oid, schemaname name, relname name, indexrelname
    name, idx_blks_read int8, idx_blks_hit int8
pg_statio_sys_sequences view: relid oid, schemaname name, relname name, blks_read int8, blks_hit
    int8
pg_statio_sys_tables view: relid oid, schemaname name, relname name, heap_blks_read int8,
    heap_blks_hit int8, idx_blks_read int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit
    int8, tidx_blks_read int8, tidx_blks_hit int8
pg_statio_user_indexes view: relid oid, indexrelid oid, schemaname name, relname name, indexrelname
    name, idx_blks_read int8, idx_blks_hit int8
pg_statio_user_sequences view: relid oid, schemaname name, relname name, blks_read int8, blks_hit
    int8
pg_statio_user_tables view: relid oid, schemaname name, relname name, heap_blks_read int8,
    heap_blks_hit int8, idx_blks_read int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit
    int8, tidx_blks_read int8, tidx_blks_hit int8
pg_statistic 2619: starelid oid!, staattnum int2!, stainherit bool!, stanullfrac float4!, stawidth
    int4!, stadistinct float4!, stakind1 int2!, stakind2 int2!, stakind3 int2!, stakind4 int2!,
    stakind5 int2!, staop1 oid!, staop2 oid!, staop3 oid!, staop4 oid!, staop5 oid!, stacoll1 oid!,
    stacoll2 oid!, stacoll3 oid!, stacoll4 oid!, stacoll5 oid!, stanumbers1 float4[], stanumbers2
    float4[], stanumbers3 float4[], stanumbers4 float4[], stanumbers5 float4[], stavalues1 anyarray,
    stavalues2 anyarray, stavalues3 anyarray, stavalues4 anyarray, stavalues5 anyarray
pg_statistic_ext 3381: oid oid!, stxrelid oid!, stxname name!, stxnamespace oid!, stxowner oid!,
    stxstattarget int4!, stxkeys int2vector!, stxkind char[]!, stxexprs pg_node_tree
pg_statistic_ext_data 3429: stxoid oid!, stxdinherit bool!, stxdndistinct pg_ndistinct,
    stxddependencies pg_dependencies, stxdmcv pg_mcv_list, stxdexpr pg_statistic[]
pg_stats view: schemaname name, tablename name, attname name, inherited bool, null_frac float4,
    avg_width int4, n_distinct float4, most_common_vals anyarray, most_common_freqs float4[],
    histogram_bounds anyarray, correlation float4, most_common_elems anyarray,
    most_common_elem_freqs float4[], elem_count_histogram float4[]
pg_stats_ext view: schemaname name, tablename name, statistics_schemaname name, statistics_name
    name, statistics_owner name, attnames name[], exprs text[], kinds char[], inherited bool,
    n_distinct pg_ndistinct, dependencies pg_dependencies, most_common_vals text[],
    most_common_val_nulls bool[], most_common_freqs float8[], most_common_base_freqs float8[]
pg_stats_ext_exprs view: schemaname name, tablename name, statistics_schemaname name,
    statistics_name name, statistics_owner name, expr text, inherited bool, null_frac float4,
    avg_width int4, n_distinct float4, most_common_vals anyarray, most_common_freqs float4[],
    histogram_bounds anyarray, correlation float4, most_common_elems anyarray,
    most_common_elem_freqs float4[], elem_count_histogram float4[]
pg_subscription 6100: oid oid!, subdbid oid!, subskiplsn pg_lsn!, subname name!, subowner oid!,
    subenabled bool!, subbinary bool!, substream bool!, subtwophasestate char!, subdisableonerr
    bool!, subconninfo text!, subslotname name, subsynccommit text!, subpublications text[]!
pg_subscription_rel 6102: srsubid oid!, srrelid oid!, srsubstate char!, srsublsn pg_lsn
pg_tables view: schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool,
    hasrules bool, hastriggers bool, rowsecurity bool
pg_tablespace 1213: oid oid!, spcname name!, spcowner oid!, spcacl aclitem[], spcoptions text[]
pg_timezone_abbrevs view: abbrev text, utc_offset interval, is_dst bool
pg_timezone_names view: name text, abbrev text, utc_offset interval, is_dst bool
pg_transform 3576: oid oid!, trftype oid!, trflang oid!, trffromsql regproc!, trftosql regproc!
pg_trigger 2620: oid oid!, tgrelid oid!, tgparentid oid!, tgname name!, tgfoid oid!, tgtype int2!,
    tgenabled char!, tgisinternal bool!, tgconstrrelid oid!, tgconstrindid oid!, tgconstraint oid!,
    tgdeferrable bool!, tginitdeferred bool!, tgnargs int2!, tgattr int2vector!, tgargs bytea!,
    tgqual pg_node_tree, tgoldtable name, tgnewtable name
pg_ts_config 3602: oid oid!, cfgname name!, cfgnamespace oid!, cfgowner oid!, cfgparser oid!
pg_ts_config_map 3603: mapcfg oid!, maptokentype int4!, mapseqno int4!, mapdict oid!
pg_ts_dict 3600: oid oid!, dictname name!, dictnamespace oid!, dictowner oid!, dicttemplate oid!,
    dictinitoption text
pg_ts_parser 3601: oid oid!, prsname name!, prsnamespace oid!, prsstart regproc!, prstoken regproc!,
    prsend regproc!, prsheadline regproc!, prslextype regproc!
pg_ts_template 3764: oid oid!, tmplname name!, tmplnamespace oid!, tmplinit regproc!, tmpllexize
    regproc!
pg_type 1247: oid oid!, typname name!, typnamespace oid!, typowner oid!, typlen int2!, typbyval
    bool!, typtype char!, typcategory char!, typispreferred bool!, typisdefined bool!, typdelim
    char!, typrelid oid!, typsubscript regproc!, typelem oid!, typarray oid!, typinput regproc!,
    typoutput regproc!, typreceive regproc!, typsend regproc!, typmodin regproc!, typmodout
    regproc!, typanalyze regproc!, typalign char!, typstorage char!, typnotnull bool!, typbasetype
    oid!, typtypmod int4!, typndims int4!, typcollation oid!, typdefaultbin pg_node_tree, typdefault
    text, typacl aclitem[]
pg_user view: usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool,
    usebypassrls bool, passwd text, valuntil timestamptz, useconfig text[]
pg_user_mapping 1418: oid oid!, umuser oid!, umserver oid!, umoptions text[]
pg_user_mappings view: umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]
pg_views view: schemaname name, viewname name, viewowner name, definition text
"""
