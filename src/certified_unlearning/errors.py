"""The errors that a user can cause. The command line prints such an error as one sentence and exits with 1."""


class UnlearningError(Exception):
    """Base class of all errors that are caused by the user's input, not by a fault of the program."""


class ParameterError(UnlearningError, ValueError):
    """A parameter has a value outside its range (``epsilon = 0``), or an unknown value (a misspelt preset).

    Functions and data classes check their arguments. This is documented only here: under *Raises*, docstrings name this
    error only if its cause is more than a single invalid value.
    """


class DataError(UnlearningError, ValueError):
    """A file or data set is missing, damaged or of the wrong kind."""


class AssumptionError(UnlearningError, ValueError):
    """A theorem's assumption does not hold, so its guarantee would not be valid."""


class InfeasibleError(UnlearningError, ValueError):
    """No value of the planned quantity meets the target."""


class StorageError(UnlearningError, OSError):
    """A result could not be written (no permission, full disk)."""


class LedgerError(UnlearningError):
    """Something in a model directory differs from what its ledger recorded."""


class TrackingError(UnlearningError):
    """The MLflow store does not answer."""


class ChangedVerdictsError(UnlearningError):
    """Verdicts on claims differ from the committed baseline."""


class ProcessError(UnlearningError):
    """One of the processes that share a run ended."""


class DivergedError(ProcessError):
    """The processes that share a run have computed different results."""


class OutputError(UnlearningError):
    """Standard output cannot be written, though the command has done its work."""


class Interrupted(BaseException):
    """Ctrl-C was pressed. It is not an error, and `except Exception` does not catch it.

    Attributes:
        known: Information for the user, as a sentence without its full stop; empty if there is none.
    """

    known = ""
