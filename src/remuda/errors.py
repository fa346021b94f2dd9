"""Every error that a user of Remuda can meet, with its SQLSTATE.

The tree is cut by what the caller should do::

    RemudaError
    ├── InputError            fix the statement, the object or the option
    │   ├── SqlSyntaxError, UndefinedColumn, UndefinedMap, TypeMismatch, ...
    │   ├── DataError         a value is wrong: overflow, division by zero, bad text
    │   └── ConstraintError   a value breaks a constraint of the map
    ├── TransientError        the grid could not serve the request now
    │   ├── MemberUnavailable (NotServed: nothing was done), ConnectionBroken (OutcomeUnknown),
    │   ├── ViewChanged, QueryTimeout, QueryCanceled, SerializationFailure, ...
    ├── ResourceError         memory, disk or a limit: change the limit or the work
    ├── ProtocolError         the other side does not speak our protocol
    └── InternalError         a bug in Remuda

Errors travel between processes as ``ErrorReport`` (see ``to_report``) and are
raised again on the other side with the same class.
"""

from __future__ import annotations

# Re-exported: other modules import errors from this one only.
from remuda.error_root import ErrorReport as ErrorReport  # noqa: PLC0414
from remuda.error_root import ErrorSubject as ErrorSubject  # noqa: PLC0414
from remuda.error_root import Position as Position  # noqa: PLC0414
from remuda.error_root import RemudaError as RemudaError  # noqa: PLC0414
from remuda.error_root import caret_lines as caret_lines  # noqa: PLC0414


def from_report(report: ErrorReport, statement: str | None = None) -> RemudaError:
    """The error that ``report`` describes; an unknown kind becomes an ``InternalError``."""
    kind = RemudaError.kinds.get(report.kind, InternalError)
    return kind(
        report.message,
        detail=report.detail,
        hint=report.hint,
        position=report.position,
        statement=statement,
        member=report.member,
        subject=report.subject,
        may_have_run=report.may_have_run,
        context=report.context,
    )


# --- fix the input -------------------------------------------------------------------------


class InputError(RemudaError):
    """The request itself is wrong."""

    sqlstate = "22023"
    may_have_run = False


class SqlSyntaxError(InputError):
    sqlstate = "42601"


class UndefinedMap(InputError):
    sqlstate = "42P01"


class UndefinedSchema(InputError):
    sqlstate = "3F000"


class UndefinedDatabase(InputError):
    sqlstate = "3D000"


class InvalidName(InputError):
    """A text that should be the name of an object of the catalog is none."""

    sqlstate = "42602"


class UndefinedObject(InputError):
    """Something that is neither a map nor a column does not exist: a constraint, say."""

    sqlstate = "42704"


class DuplicateObject(InputError):
    """Something that is neither a map nor a column exists already: a constraint, say."""

    sqlstate = "42710"


class DependentObjects(InputError):
    """Other things need what is to be dropped or changed."""

    sqlstate = "2BP01"


class UndefinedColumn(InputError):
    sqlstate = "42703"


class UndefinedFunction(InputError):
    sqlstate = "42883"


class AmbiguousFunction(InputError):
    """Several functions or operators fit alike."""

    sqlstate = "42725"


class UndefinedType(InputError):
    sqlstate = "42704"


class AmbiguousColumn(InputError):
    sqlstate = "42702"


class DuplicateColumn(InputError):
    sqlstate = "42701"


class DuplicateAlias(InputError):
    sqlstate = "42712"


class DuplicateMap(InputError):
    sqlstate = "42P07"


class DuplicateSchema(InputError):
    sqlstate = "42P06"


class InvalidSchemaName(InputError):
    """A name that is kept for schemas of the system."""

    sqlstate = "42939"


class InvalidSchemaDefinition(InputError):
    """An element of CREATE SCHEMA that names another schema."""

    sqlstate = "42P15"


class TypeMismatch(InputError):
    sqlstate = "42804"


class CannotCoerce(TypeMismatch):
    """There is no CAST between two types."""

    sqlstate = "42846"


class GroupingError(InputError):
    sqlstate = "42803"


class WindowingError(InputError):
    """A window function where none may be, or a window that cannot be."""

    sqlstate = "42P20"


class WrongObjectType(InputError):
    sqlstate = "42809"


class InvalidGrant(InputError):
    sqlstate = "0LP01"


class IndeterminateType(InputError):
    """Nothing says which type an expression has."""

    sqlstate = "42P18"


class InvalidColumnReference(InputError):
    sqlstate = "42P10"


class InvalidRecursion(InputError):
    sqlstate = "42P19"


class InvalidDefinition(InputError):
    sqlstate = "42P16"


class InvalidForeignKey(InputError):
    """The columns of a foreign key do not name a key of the other table."""

    sqlstate = "42830"


class InfiniteRecursion(InputError):
    """A view that reads itself."""

    sqlstate = "42P17"


class WrongParameters(InputError):
    sqlstate = "07001"


class IndeterminateParameter(WrongParameters):
    """Nothing says which type a parameter has."""

    sqlstate = "42P18"


class UndefinedParameter(InputError):
    """A parameter where there can be none."""

    sqlstate = "42P02"


class UndefinedStatement(InputError):
    """A prepared statement, query or job of this name is not known here."""

    sqlstate = "26000"


class DuplicateStatement(InputError):
    sqlstate = "42P05"


class UndefinedCursor(InputError):
    """A cursor or portal of this name is not open."""

    sqlstate = "34000"


class DuplicateCursor(InputError):
    """A cursor or portal of that name is open."""

    sqlstate = "42P03"


class InvalidCursorDefinition(InputError):
    """Options of DECLARE that contradict each other."""

    sqlstate = "42P11"


class InvalidCursorState(InputError):
    """The cursor is not where the statement needs it."""

    sqlstate = "24000"


class UndefinedSetting(InputError):
    sqlstate = "42704"


class CannotChangeSetting(InputError):
    sqlstate = "55P02"


class NoActiveTransaction(InputError):
    sqlstate = "25P01"


class WrongState(InputError):
    """The request does not fit the state of things: a commit that has begun is not cancelled."""

    sqlstate = "55000"


class CursorScansForward(WrongState):
    """A cursor without SCROLL was to go back."""


class NotSupported(InputError):
    sqlstate = "0A000"


class AuthenticationFailed(InputError):
    """The other side has not shown its identity: no password, a wrong one, another cluster
    secret."""

    sqlstate = "28000"


class WrongPassword(AuthenticationFailed):
    """There is no such user, or the password is another one: which of both is not told."""

    sqlstate = "28P01"


class InsufficientPrivilege(InputError):
    """The user lacks a role; names the role and the map."""

    sqlstate = "42501"


class TlsFailed(InputError):
    """The sides do not agree on TLS: one does not speak it, or a certificate is not accepted."""

    sqlstate = "08001"


class DataError(InputError):
    """A value cannot be computed or stored."""

    sqlstate = "22000"


class SqlJsonError(DataError):
    """A jsonpath meets a value that it cannot be applied to; filters take it as unknown."""

    sqlstate = "22000"


class InvalidJsonDatetimeArgument(SqlJsonError):
    """``.datetime()`` of a value that is no text, or a text in no known form."""

    sqlstate = "22031"


class InvalidJsonSubscript(SqlJsonError):
    sqlstate = "22033"


class NonNumericJsonItem(SqlJsonError):
    """A method of numbers is applied to another value."""

    sqlstate = "22036"


class JsonSingletonRequired(SqlJsonError):
    """An operator of a jsonpath needs exactly one value of a type."""

    sqlstate = "22038"


class JsonArrayNotFound(SqlJsonError):
    sqlstate = "22039"


class JsonMemberNotFound(SqlJsonError):
    sqlstate = "2203A"


class JsonNumberNotFound(SqlJsonError):
    sqlstate = "2203B"


class JsonObjectNotFound(SqlJsonError):
    sqlstate = "2203C"


class DivisionByZero(DataError):
    sqlstate = "22012"


class NumericOverflow(DataError):
    sqlstate = "22003"


class InvalidText(DataError):
    sqlstate = "22P02"


class InvalidDatetime(DataError):
    sqlstate = "22007"


class DatetimeOverflow(InvalidDatetime):
    sqlstate = "22008"


class InvalidZoneDisplacement(InvalidDatetime):
    sqlstate = "22009"


class IntervalOverflow(InvalidDatetime):
    sqlstate = "22008"


class IntervalFieldOverflow(IntervalOverflow):
    """A field in the text of an interval that is out of range."""

    sqlstate = "22015"


class InvalidFrameOffset(DataError):
    """The offset of a window frame is NULL or negative."""

    sqlstate = "22013"


class InvalidNtileArgument(DataError):
    sqlstate = "22014"


class InvalidNthValueArgument(DataError):
    sqlstate = "22016"


class InvalidJsonPath(DataError):
    """A text that is no SQL/JSON path."""

    sqlstate = "42601"


class UnsupportedValue(DataError):
    """A value of a type that cannot hold all that PostgreSQL's can."""

    sqlstate = "0A000"


class NullNotAllowed(DataError):
    """NULL where a function takes none."""

    sqlstate = "22004"


class UntranslatableCharacter(InvalidText):
    """A character that text cannot hold."""

    sqlstate = "22P05"


class ArraySubscript(DataError):
    """A subscript, dimension or length that no array has."""

    sqlstate = "2202E"


class InvalidParameterValue(DataError):
    """An argument that a function does not take."""

    sqlstate = "22023"


class SequenceExhausted(DataError):
    """A sequence that does not CYCLE has given out its last number."""

    sqlstate = "2200H"


class NumberNotDefined(InputError):
    """A sequence is asked for a number that the session has not taken, or has lost its state."""

    sqlstate = "55000"


class InvalidGeneration(InputError):
    """The expression of a generated column is one that such a column cannot have."""

    sqlstate = "42P17"


class GeneratedAlways(InputError):
    """A statement gives a value of its own for a column that is GENERATED ALWAYS."""

    sqlstate = "428C9"


class StringTooLong(DataError):
    sqlstate = "22001"


class InvalidArgument(DataError):
    """An argument outside of the domain of a function: of a root, a logarithm, a power."""

    sqlstate = "2201F"


class InvalidLogarithmArgument(InvalidArgument):
    sqlstate = "2201E"


class InvalidSubstring(DataError):
    sqlstate = "22011"


class InvalidEscape(DataError):
    """A pattern that ends with its escape character, an escape of several characters, or a broken
    escape in a string."""

    sqlstate = "22025"


class InvalidBucketArgument(DataError):
    sqlstate = "2201G"


class InvalidByteSequence(DataError):
    """Bytes that are no text in their encoding, or text that an encoding does not have."""

    sqlstate = "22021"


class BadCopyData(DataError):
    """Data of a COPY that has not its format: a row with too few columns, for one."""

    sqlstate = "22P04"


class InvalidBinaryForm(DataError):
    """A value whose bytes are not those of its type."""

    sqlstate = "22P03"


class SubscriptOutOfRange(DataError):
    sqlstate = "2202E"


class InvalidRegularExpression(DataError):
    sqlstate = "2201B"


class InvalidRowCount(DataError):
    """A LIMIT or FETCH FIRST that is negative or, WITH TIES, NULL."""

    sqlstate = "2201W"


class InvalidOffset(DataError):
    sqlstate = "2201X"


class InvalidEscapeUse(DataError):
    """An escape character in a pattern where it means nothing."""

    sqlstate = "2200C"


class InvalidSampleArgument(DataError):
    """A percentage of TABLESAMPLE out of range."""

    sqlstate = "2202H"


class InvalidSampleSeed(DataError):
    sqlstate = "2202G"


class ObjectMismatch(DataError):
    """An object does not fit the schema of its map; names map, field, expected and found type."""

    sqlstate = "22000"


class RowTooLarge(DataError):
    sqlstate = "54000"


class ConstraintError(InputError):
    sqlstate = "23000"


class NotNullViolation(ConstraintError):
    sqlstate = "23502"


class UniqueViolation(ConstraintError):
    sqlstate = "23505"


class ForeignKeyViolation(ConstraintError):
    """A row would name a row of another map that is not there."""

    sqlstate = "23503"


class CheckViolation(ConstraintError):
    """A row does not meet a CHECK constraint of its map."""

    sqlstate = "23514"


class CardinalityViolation(InputError):
    """More than one row where there may be one."""

    sqlstate = "21000"


# --- try again -----------------------------------------------------------------------------


class TransientError(RemudaError):
    """Nothing is wrong with the request; the grid could not serve it now. A read may be sent again
    (``retryable``). A write may, if the error says that nothing was done."""

    sqlstate = "40000"
    transient = True


class MemberUnavailable(TransientError):
    """A member has left or does not answer; names the member and the cause."""

    sqlstate = "57P03"


class MemberGivenUp(MemberUnavailable):
    """Other members count the sender of a message as lost. That is for good: it stops."""

    may_have_run = False


class NoAnswer(MemberUnavailable):
    """The member took the request and said nothing for as long as the caller waits."""


class NotServed(MemberUnavailable):
    """The request was refused, or never sent, before anything was done. Clients ask again by
    themselves, within the request's timeout, along the newest view."""

    may_have_run = False


class MemberNotReady(NotServed):
    """The member has just taken over partitions, or is joining or stopping."""


class MemberLeaving(MemberNotReady):
    """The member leaves: it begins nothing new, or has ended what was open. Nothing was done."""


class TakenOver(MemberNotReady):
    """A request for partitions that a member takes over, while it serves those that it had."""


class MemberSuspected(NotServed):
    """A member that the request needs is not heard, and no view has dropped it yet. Statements wait
    until it is heard again or the others have taken over."""


class NoLease(NotServed):
    """The member may not serve as a primary: it does not hear from a majority of the members."""


class PartitionsUnreachable(MemberUnavailable):
    """No member has a copy of a partition that the request needs; the members that kept it last may
    live, and bring it back."""

    may_have_run = False


class PartitionsLost(MemberUnavailable):
    """Every copy of a partition that the request needs is lost, for good."""

    sqlstate = "58000"
    transient = False
    may_have_run = False


class ConnectionBroken(TransientError):
    sqlstate = "08006"


class OutcomeUnknown(ConnectionBroken):
    """A write was sent and no answer came: it may have taken effect, or still may. A client that
    sends it again may write twice, so it is not retryable."""

    sqlstate = "08007"
    transient = False


class ClientClosed(ConnectionBroken):
    """The client was closed, here. Connect again; the same client never answers again."""

    sqlstate = "08003"
    transient = False
    may_have_run = False


class ConnectionRefused(TransientError):
    sqlstate = "08001"
    may_have_run = False


class NobodyListens(ConnectionRefused):
    """The host answered that no process listens at the port."""


class QueryTimeout(TransientError):
    sqlstate = "57014"


class QueryCanceled(TransientError):
    sqlstate = "57014"


class SessionTerminated(QueryCanceled):
    """An operator ended the connection of the client, and its open work."""

    sqlstate = "57P01"


class SchemaChanged(TransientError):
    """The map was altered since the request was planned."""

    sqlstate = "0A001"
    may_have_run = False


class ViewChanged(TransientError):
    """The request comes from another view of the cluster."""

    sqlstate = "55000"
    may_have_run = False


class JobAborted(TransientError):
    sqlstate = "40003"
    may_have_run = False


class JobInterrupted(JobAborted):
    """Members left, joined or were lost while the rows of a job were written. It was rolled back:
    the same rows may be written again, in another job."""


class SerializationFailure(TransientError):
    """Rows that a statement read were changed by others before it could commit."""

    sqlstate = "40001"
    may_have_run = False


class SnapshotTooOld(TransientError):
    """The versions that a read timestamp needs have been collected."""

    sqlstate = "72000"
    may_have_run = False


class ChangesExpired(SnapshotTooOld):
    """Changes since a position of a stream are not kept any more."""


# --- resources -----------------------------------------------------------------------------


class ResourceError(RemudaError):
    sqlstate = "53000"


class OutOfMemory(ResourceError):
    sqlstate = "53200"


class StorageFull(OutOfMemory):
    """A member, or a map with ``max_bytes``, holds as much as it may. The write was refused before
    it began; it succeeds when there is room again."""

    may_have_run = False
    transient = True


class TooManyQueries(ResourceError):
    """So many wait already that another one is not taken."""

    sqlstate = "53400"
    may_have_run = False
    transient = True


class DiskFull(ResourceError):
    """A disk has no room for what a request needs. It was refused before anything was done."""

    sqlstate = "53100"
    may_have_run = False


class LimitExceeded(ResourceError):
    sqlstate = "54000"


class NotificationsLost(ResourceError):
    sqlstate = "53400"


class DataCorrupted(ResourceError):
    """Bytes on a disk are not those that were written."""

    sqlstate = "XX001"


class UnknownFormat(ResourceError):
    """A file is whole, and has a format that this release does not read. It was left as it is."""

    sqlstate = "0A000"


# --- the other side ------------------------------------------------------------------------


class ProtocolError(RemudaError):
    sqlstate = "08P01"


class UnsupportedProtocol(ProtocolError):
    """A client of PostgreSQL speaks another version of its protocol."""

    sqlstate = "0A000"


class FrameCorrupt(ProtocolError):
    pass


class FrameTooLarge(ProtocolError):
    pass


class VersionMismatch(ProtocolError):
    pass


class InternalError(RemudaError):
    """A bug: please report it with the message."""

    sqlstate = "XX000"


# --- transactions of several statements ----------------------------------------------------


class ActiveTransaction(InputError):
    """A statement that cannot run inside a transaction."""

    sqlstate = "25001"


class ReadOnlyTransaction(InputError):
    """A write in a transaction that only reads."""

    sqlstate = "25006"


class FailedTransaction(InputError):
    """An earlier statement failed: only a rollback is possible."""

    sqlstate = "25P02"


class UndefinedSavepoint(InputError):
    sqlstate = "3B001"


class UndefinedTransaction(TransientError):
    """The transaction has ended, or this member never knew it."""

    sqlstate = "25P01"
    may_have_run = False


class TransactionTimeout(TransientError):
    """It took longer than it may, and was rolled back."""

    sqlstate = "25P04"
    may_have_run = False


class IdleTransaction(TransactionTimeout):
    """It waited for its next statement for longer than it may, and was rolled back."""

    sqlstate = "25P03"


class TransactionSuspended(InputError):
    """It must be resumed before it is used."""

    sqlstate = "55000"


class DeadlockDetected(TransientError):
    """Transactions wait for each other in a circle; this one was chosen to give way."""

    sqlstate = "40P01"
    may_have_run = False


class LockNotAvailable(TransientError):
    """Another transaction holds the lock for longer than the request may wait."""

    sqlstate = "55P03"
    may_have_run = False


# --- statements that run on Spark ----------------------------------------------------------


class NotOnSpark(NotSupported):
    """Spark does not give the same answer to this statement: it runs on the grid only."""


class SparkServiceMissing(TransientError):
    """No service with a Spark session serves this member."""

    sqlstate = "57P03"
    may_have_run = False


class SparkServiceLost(TransientError):
    """The service that ran the statement on Spark is gone."""

    sqlstate = "08006"


class SparkFailed(TransientError):
    """Spark could not run a statement, for a reason that is no error of the statement."""

    sqlstate = "58000"
