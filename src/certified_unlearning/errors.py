"""The errors a user can cause. The command line prints their message as one sentence and exits with 1."""


class UnlearningError(Exception):
    """Base of every error that is the input's fault, not the program's."""


class ParameterError(UnlearningError, ValueError):
    """A parameter has a value outside its range (``epsilon = 0``), or one that is not known (a preset's name).

    Functions and data classes check the values that they are given. This is said here once: under *Raises*,
    docstrings name this error only where it has another cause than one value by itself.
    """


class DataError(UnlearningError, ValueError):
    """A file or data set is missing, damaged or not what it should be."""


class AssumptionError(UnlearningError, ValueError):
    """A theorem's assumption does not hold, so its guarantee would not have been earned."""


class InfeasibleError(UnlearningError, ValueError):
    """No value of the planned quantity meets the target."""


class StorageError(UnlearningError, OSError):
    """A result could not be written (no permission, full disk)."""


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
    """Somebody pressed Ctrl-C: no mistake, and nothing that `except Exception` may catch.

    Attributes:
        known: What the user must know, as a sentence without its full stop; empty for nothing.
    """

    known = ""
