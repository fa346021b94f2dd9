"""The operations of the three channels: what docs/protocol.md says beyond the .proto files.

An operation without a line here is described by its comment in the .proto file, if that has one of
the forms ``Request -> Response: meaning`` and ``Message, one-way: meaning``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

REQUEST, ONE_WAY, ANSWER, UNUSED = "request", "one-way", "answer", "not used"


class Operation(NamedTuple):
    """``mode``: a request that is answered, a one-way request, a number that only answers bear, or
    a number of Drill's that nobody sends here."""

    mode: str
    message: str
    answer: str
    meaning: str


def _request(message: str, answer: str, meaning: str) -> Operation:
    return Operation(REQUEST, message, answer, meaning)


def _one_way(message: str, meaning: str) -> Operation:
    return Operation(ONE_WAY, message, "", meaning)


def _answer(message: str, meaning: str) -> Operation:
    return Operation(ANSWER, message, "", meaning)


def _unused(meaning: str) -> Operation:
    return Operation(UNUSED, "", "", meaning)


ACK = _answer("Ack", "what some requests are answered with")
GOODBYE = _unused("Drill's; a connection is simply closed here")

USER: Final = {
    "HANDSHAKE": _request(
        "UserToBitHandshake", "BitToUserHandshake", "first on every connection: versions, user"
    ),
    "ACK": ACK,
    "GOODBYE": _one_way(
        "Empty",
        "sent by the member: it has left, has received nothing that it has not answered, and "
        "answers nothing any more",
    ),
    "RUN_QUERY": _request(
        "RunQuery",
        "QUERY_HANDLE or QUERY_ANSWER",
        "begin a statement; its result follows in requests of the member",
    ),
    "CANCEL_QUERY": _request("QueryId", "ACK", "end a statement; always acknowledged"),
    "REQUEST_RESULTS": _unused("Drill's, deprecated there"),
    "QUERY_DATA": _request(
        "QueryData + rows",
        "ACK",
        "sent by the member: a page; at most three are on their way unacknowledged",
    ),
    "QUERY_HANDLE": _answer("QueryId", "the answer to RUN_QUERY: the id of the statement"),
    "GET_SERVER_META": _request("GetServerMetaReq", "SERVER_META", "what the server can do"),
    "SERVER_META": _answer("GetServerMetaResp", "the answer to GET_SERVER_META"),
    "QUERY_RESULT": _request(
        "QueryResult", "ACK", "sent by the member, once: how the statement ended"
    ),
    "RESUME_PAUSED_QUERY": _request("QueryId", "ACK", "go on after a pause made for a test"),
    "GET_QUERY_PLAN_FRAGMENTS": _request(
        "GetQueryPlanFragments", "QUERY_PLAN_FRAGMENTS", "plan a statement, do not run it"
    ),
    "QUERY_PLAN_FRAGMENTS": _answer("QueryPlanFragments", "the answer to GET_QUERY_PLAN_FRAGMENTS"),
    "GET_CATALOGS": _request("GetCatalogsReq", "CATALOGS", "catalogs whose names fit a filter"),
    "GET_SCHEMAS": _request("GetSchemasReq", "SCHEMAS", "schemas whose names fit"),
    "GET_TABLES": _request("GetTablesReq", "TABLES", "maps, views and system relations that fit"),
    "GET_COLUMNS": _request("GetColumnsReq", "COLUMNS", "their columns"),
    "CATALOGS": _answer("GetCatalogsResp", "the answer to GET_CATALOGS"),
    "SCHEMAS": _answer("GetSchemasResp", "the answer to GET_SCHEMAS"),
    "TABLES": _answer("GetTablesResp", "the answer to GET_TABLES"),
    "COLUMNS": _answer("GetColumnsResp", "the answer to GET_COLUMNS"),
    "CREATE_PREPARED_STATEMENT": _request(
        "CreatePreparedStatementReq", "PREPARED_STATEMENT", "plan a statement to be run later"
    ),
    "PREPARED_STATEMENT": _answer(
        "CreatePreparedStatementResp", "the answer to CREATE_PREPARED_STATEMENT"
    ),
    "SASL_MESSAGE": _request("SaslMessage", "SASL_MESSAGE", "a step of authentication"),
    "CLUSTER_INFO": _request("Empty", "ClusterInfo", "members, partition owners, maps"),
    "DESCRIBE_MAP": _request("MapName", "MapDescription", "the schema of a map, and its size"),
    "CREATE_MAP": _request("CreateMap", "MapDescription", "make a map"),
    "DROP_MAP": _request("MapName", "Ack", "drop a map"),
    "QUERY_ANSWER": _answer(
        "QueryAnswer", "a whole small result in one frame, to clients that take it"
    ),
    "COPY_DATA": _request(
        "CopyData + bytes", "CopyTaken", "a piece of what COPY FROM STDIN reads, when asked for"
    ),
    "MAP_GET": _request("KeysRequest", "RowsResponse", "entries by their keys"),
    "MAP_PUT": _request("PutRequest", "RowsResponse", "put entries; gives the old ones if asked"),
    "MAP_REMOVE": _request("KeysRequest", "RowsResponse", "remove entries by their keys"),
    "MAP_SIZE": _request("MapName", "Count", "how many entries a map has"),
    "MAP_PUT_BATCH": _request(
        "PutBatchRequest + Arrow stream", "Count", "put many entries, each for itself"
    ),
    "MAP_COMPUTE": _request(
        "ComputeRequest", "RowsResponse", "compute new values of entries where they are"
    ),
    "MAP_GET_VERSIONED": _request(
        "KeysRequest", "RowsResponse", "entries by their keys, with their versions"
    ),
    "MAP_CHECKED_WRITE": _request(
        "CheckedWrite", "RowsResponse", "store or remove entries that are as expected"
    ),
    "JOB_BEGIN": _request("JobBegin", "JobHandle", "begin an atomic write of many rows"),
    "JOB_WRITE": _request("JobWrite + Arrow stream", "Count", "rows of a task, kept unseen"),
    "JOB_TASK_END": _request("JobTaskEnd", "Count", "a task has sent all: compare the count"),
    "JOB_COMMIT": _request("JobCommit", "Count", "show the rows of the named tasks at once"),
    "JOB_ABORT": _request("JobAbort", "Ack", "drop them"),
    "JOB_OUTCOME": _request("JobOutcomeRequest", "JobOutcome", "whether a job was committed"),
    "READ_LEASE": _request(
        "ReadLease", "ReadLeased", "keep the versions that a read of several requests needs"
    ),
    "SPARK_WORK": _request(
        "SparkPoll", "SparkNews", "a service with a Spark session asks for statements to run"
    ),
    "SPARK_ROWS": _request(
        "SparkRows + Arrow stream", "SparkWanted", "rows of a statement that ran on Spark"
    ),
    "MEMBER_STATE": _request("Empty", "MemberState", "gauges of what the member holds"),
}

CONTROL: Final = {
    "HANDSHAKE": _request(
        "ControlHandshake", "ControlHandshake", "first on every connection: who speaks, versions"
    ),
    "ACK": ACK,
    "GOODBYE": GOODBYE,
    "INITIALIZE_FRAGMENTS": _unused("Drill's; QUERY_START takes its place"),
    "CANCEL_FRAGMENT": _unused("Drill's; QUERY_CANCEL takes its place"),
    "RECEIVER_FINISHED": _unused("Drill's; FlowControl.receiver_finished takes its place"),
    "FRAGMENT_STATUS": _unused("Drill's; FRAGMENT_DONE takes its place"),
    "QUERY_STATUS": _unused("Drill's"),
    "CUSTOM": _unused("Drill's"),
    "SASL_MESSAGE": _request("SaslMessage", "SASL_MESSAGE", "a step of authentication"),
    "QUERY_START": _request(
        "QueryStart", "ACK", "run your fragments of this query now; the answer: whether they run"
    ),
    "QUERY_CANCEL": _one_way(
        "QueryCancel", "participant to initiator: end this query; initiator to participant: it ends"
    ),
    "QUERY_CHECK": _one_way(
        "QueryCheck", "these queries have not moved for a while: do they live?"
    ),
    "QUERY_CHECK_RESPONSE": _one_way(
        "QueryCheckResponse", "those that do not; and who has sent everything in those that do"
    ),
    "FRAGMENT_DONE": _one_way("FragmentDone", "to the initiator: an instance has ended well"),
    "INDEX_READ": _request(
        "IndexRead", "IndexRows", "the few rows that a secondary index names, if nothing is newer"
    ),
    "ENTRY_READ": _request(
        "EntryRead", "EntryRow", "the entry of a key, as a client of PostgreSQL receives it"
    ),
    "JOIN": _request("Join", "Join", "let me in: the answer has a number, or the view with me"),
    "VIEW_INSTALL": _request("ViewInstall", "ACK", "the members and the owners of partitions"),
    "HEARTBEAT": _one_way("Heartbeat", "I am alive"),
    "HEARTBEAT_ANSWER": _one_way("Heartbeat", "I have heard it: a lease counts from its sending"),
    "AGREE": _one_way("Agreement", "which view follows"),
    "WISH": _one_way("MembershipWish", "to the lowest member: a view with, or without, somebody"),
    "MEET": _request(
        "MembershipWish",
        "MembershipWish",
        "with join: connect to this process, is it the one that it says? Without: who are you?",
    ),
    "CLOCK": _request("Heartbeat", "Heartbeat", "the clock of a participant, to choose T above it"),
    "CATALOG_CHANGE": _request(
        "CatalogChange", "CatalogState", "to the coordinator: change the catalog everywhere"
    ),
    "CATALOG_INSTALL": _request("CatalogState", "CatalogState", "the catalog of this version"),
    "CATALOG_VOTE": _request("CatalogVote", "CatalogVoted", "which catalog follows"),
    "INDEX_STATUS": _request("IndexStatusRequest", "IndexStatus", "which indexes are built here"),
    "INDEX_ROOM": _request("IndexRoomRequest", "Ack", "is there memory for new indexes"),
    "MAP_STATISTICS": _request("StatisticsRequest", "StatisticsReply", "what the optimizer needs"),
    "ACTIVITY": _request(
        "ActivityRequest", "Activity", "clients of a member, their work, and locks on its keys"
    ),
    "END_WORK": _request(
        "EndWork", "WorkEnded", "cancel a statement or a transaction, or end a connection"
    ),
    "DRAIN": _request("DrainRequest", "Ack", "the receiver begins to leave in order"),
    "RESET_STATEMENTS": _request(
        "ResetStatements", "Tuned", "forget what sys.statement_statistics has"
    ),
    "SET_LOG_LEVEL": _request("SetLogLevel", "Tuned", "change the level of a part of the log"),
    "CANCEL_BACKEND": _request(
        "CancelBackend",
        "Ack",
        "a CancelRequest of a PostgreSQL client of this member",
    ),
    "SYSTEM_STATE": _request("SystemStateRequest", "SystemState", "what the relations of sys show"),
    "STATEMENT_STATISTICS": _request(
        "StatementStatisticsRequest", "StatementStatistics", "statements that ended, by fingerprint"
    ),
    "COMMIT_PREPARE": _request("CommitPrepare", "CommitPrepared", "validate, and vote"),
    "COMMIT_CHECK": _request(
        "CommitCheck", "CommitPrepared", "to primaries: do the rows agree with unique indexes?"
    ),
    "JOB_VALUES": _request(
        "JobValues", "JobValues", "the values that a prepared job writes into a unique index"
    ),
    "COMMIT_KEEP": _request(
        "CommitPrepare", "CommitPrepared", "to backups: all primaries have voted, keep your copies"
    ),
    "COMMIT_FINISH": _request("CommitFinish", "Ack", "commit at this timestamp, or abort"),
    "STAGE_ROWS": _request(
        "StageRows + Arrow stream", "Ack", "rows of a statement or a job, kept unseen"
    ),
    "COMMIT_TURN": _request("CommitTurn", "Context", "wait for the turn to write a map"),
    "COMMIT_TURN_END": _request("CommitTurn", "Ack", "give the turn on"),
    "COMMIT_STATUS": _request(
        "CommitStatus", "CommitStatusReply", "the coordinator is lost: what do you know?"
    ),
    "COPY_BEGIN": _request(
        "CopyBegin", "Ack", "copies of partitions will come: what is there of them is void"
    ),
    "COPY_ROWS": _request("CopyRows + Arrow stream", "Ack", "versions of rows of a copy"),
    "COPY_REPLICATED": _request(
        "CopyBegin", "Ack", "send me a replicated map; answered when all of it was sent"
    ),
    "MOVES_PAUSE": _request(
        "MovesPause",
        "MovesPaused",
        "no partition changes hands until the commit of a job has ended; its end is repeated "
        "until it is answered",
    ),
    "JOB_TOUCH": _request("JobTouch", "JobHandle", "to the job's coordinator: does it live?"),
    "KEYED_WRITE": _request(
        "KeyedWriteRequest",
        "RowsResponse",
        "carry out a statement that changes one entry, at the owner of its key; the answer has one "
        "row, absent if nothing was changed",
    ),
    "KEYED_WRITE_END": _one_way(
        "KeyedWriteEnd", "a statement is not wanted any more: its write does not begin"
    ),
    "KEYED_WRITE_WAITS": _one_way(
        "KeyedWriteWaits", "to the initiator: the statement waits for a lock on its key"
    ),
    "FORWARD": _request(
        "Forward (+ body)", "Forward (+ body)", "a user request that the receiver can answer"
    ),
}

DATA: Final = {
    "HANDSHAKE": _request(
        "BitClientHandshake", "BitServerHandshake", "first on every connection: versions"
    ),
    "ACK": ACK,
    "GOODBYE": GOODBYE,
    "REQ_RECORD_BATCH": _one_way(
        "FragmentRecordBatch + Arrow message", "rows, from an instance to one or several instances"
    ),
    "SASL_MESSAGE": _request("SaslMessage", "SASL_MESSAGE", "a step of authentication"),
    "REQ_RUNTIME_FILTER": _unused("Drill's"),
    "DATA_ACK_WITH_CREDIT": _one_way(
        "FlowControl", "you may have sent so much in all; or: stop, no more rows are needed"
    ),
}

OPERATIONS: Final = {"user": USER, "control": CONTROL, "data": DATA}
