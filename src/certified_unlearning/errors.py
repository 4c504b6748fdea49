"""The errors that a user can cause. The command line prints their message as one sentence and exits with 1."""


class UnlearningError(Exception):
    """Base of every error that is the input's fault, not the program's."""


class ParameterError(UnlearningError, ValueError):
    """A parameter has a value outside its range (``epsilon = 0``), or one that is not known (a preset's name).

    Functions and data classes check their arguments. This is documented only here: under *Raises*, docstrings name this
    error only if it has another cause than one value by itself.
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
    """The processes that share a run do not compute the same."""


class OutputError(UnlearningError):
    """Standard output cannot be written, after something was done."""


class Interrupted(BaseException):
    """Ctrl-C was pressed: not a mistake, and not caught by `except Exception`.

    Attributes:
        known: Information for the user, as a sentence without its full stop; empty for none.
    """

    known = ""
