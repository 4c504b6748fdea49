"""Descriptions of runs for MLflow's page, as sentences that contain the runs' numbers (Markdown)."""

from certified_unlearning.mechanisms.run import Run
from certified_unlearning.reproduction.experiment import Experiment
from certified_unlearning.reproduction.summaries import Row
from certified_unlearning.text import counted, rounded_up


def experiment(shown: Experiment, headline: str | None) -> str:
    """Describe an experiment: what it shows, and the sweep point, if any, to which its metrics belong."""
    own = f"These are the metrics of *{headline}*; `seconds` is the time of all runs.\n\n" if headline else ""
    return f"**{shown.title}.**\n\n{own}{shown.caption.text}".strip()


def sweep_point(run: Run, last: Row, requests: int) -> str:
    """Describe a run: what was done, what is guaranteed, and how good the model is.

    Args:
        run: The run.
        last: Summary of the run's last request (`summaries.summarise`).
        requests: Number of requests that the run answered.
    """
    removed = counted(int(last["records_removed"]), "record")
    several = f" in {requests:,} requests" if requests > 1 else ""
    steps = counted(int(last["accumulated_steps"]), "step")
    noise = f", noise scale sigma = {run.sigma:.4g}" if run.sigma > 0 else ", no noise"
    spread = f" ± {last['accuracy_std']:.4f} over {last['trials']:,} trials" if last["trials"] > 1 else ""
    return (
        f"{run.method}: {removed} of {run.constants.n:,} removed{several} from a model learned in "
        f"{counted(run.learning_steps, 'step')}; the removal took {steps}{noise}.\n\n{_guarantee(run, last)}\n\n"
        f"Test accuracy {last['accuracy_mean']:.4f}{spread}; guessing the most frequent class gets "
        f"{last['majority']:.4f} right."
    )


def _guarantee(run: Run, last: Row) -> str:
    if run.guarantee == "none":
        return "Nothing is guaranteed."
    epsilon = max((request.epsilon for request in run.requests if request.epsilon is not None), default=None)
    if epsilon is None:
        return "No epsilon is stated."
    delta = rounded_up(float(last["delta"]) + float(last["extra_delta"]), 4)
    by = f", by the accountant {run.accountant}" if epsilon > 0 else ""
    return f"epsilon = {rounded_up(epsilon, 4)} at delta = {delta} ({run.guarantee}{by})."
