"""How good predictions are: the numbers are scikit-learn's, however the records come, and mistakes are sentences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import balanced_accuracy_score, log_loss, precision_recall_fscore_support, roc_auc_score

from certified_unlearning.data import quality
from certified_unlearning.data.quality import ClassQuality, Quality, Tally, quality_of
from certified_unlearning.errors import DataError, ParameterError


def drawn(n: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    # Sixteenths, so that there are ties.
    probabilities = draw.multinomial(16, np.full(classes, 1 / classes), size=n) / 16
    return probabilities, np.concatenate([np.arange(classes), draw.integers(0, classes, n - classes)])


@given(st.integers(2, 60).map(lambda n: n * 4), st.integers(0, 99), st.integers(2, 4))
def test_the_numbers_are_those_of_scikit_learn(n: int, seed: int, classes: int) -> None:
    probabilities, labels = drawn(n, classes, seed)
    names = np.array(["a", "b", "c", "d"])[:classes]
    found = quality_of(probabilities, names[labels], names)
    said = probabilities.argmax(axis=1)
    for_auc = probabilities[:, 1] if classes == 2 else probabilities
    assert found.accuracy == pytest.approx((said == labels).mean())
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(labels, said))
    assert found.auc == pytest.approx(roc_auc_score(labels, for_auc, multi_class="ovr"))
    assert found.log_loss == pytest.approx(log_loss(labels, probabilities, labels=range(classes)))
    assert found.majority == np.bincount(labels).max() / n
    assert found.records == n


def test_blocks_add_up() -> None:
    probabilities, labels = drawn(100, 3, 5)
    tally = Tally(3)
    for some in (slice(0, 7), slice(7, 7), slice(7, 100)):
        tally.add(probabilities[some], labels[some])
    whole = quality_of(probabilities, labels, [0, 1, 2])
    assert tally.quality() == whole.__class__(**(whole.__dict__ | {"log_loss": pytest.approx(whole.log_loss)}))


def test_classes_in_any_order_and_extremes() -> None:
    sure = quality_of([[1, 0], [0, 1], [1, 0]], ["z", "a", "z"], ["z", "a"])
    assert (sure.accuracy, sure.auc, sure.log_loss) == (1, 1, 0)
    wrong = quality_of([[0, 1], [1, 0]], ["z", "a"], ["z", "a"])
    assert (wrong.accuracy, wrong.auc) == (0, 0)
    assert wrong.log_loss == pytest.approx(36.04, abs=0.01)


def test_what_a_class_without_records_leaves_out() -> None:
    found = quality_of([[0.9, 0.1], [0.2, 0.8]], [0, 0], [0, 1])
    log_loss = pytest.approx(-(np.log(0.9) + np.log(0.2)) / 2)
    by_class = (ClassQuality(0, 1.0, 0.5, 2, 1), ClassQuality(1, 0.0, None, 0, 1))
    assert found == Quality(0.5, 0.5, None, log_loss, 1.0, 2, "no record of class 1", 1, by_class)
    assert [each.line for each in by_class] == [
        "class 0: precision 1.000, recall 0.500 (2 records)",
        "class 1: precision 0.000, no recall (0 records)",
    ]
    assert not found.beats_majority


def test_always_the_most_frequent_class_does_not_beat_itself() -> None:
    labels = [0] * 93 + [1] * 7
    assert not quality_of([[0.93, 0.07]] * 100, labels, [0, 1]).beats_majority
    assert quality_of(np.eye(2)[labels], labels, [0, 1]).beats_majority


def test_of_many_classes_and_records_no_scores_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "MOST_SCORES", 100)
    assert quality_of(*drawn(34, 3, 0), [0, 1, 2]).auc is None
    assert quality_of(*drawn(33, 3, 0), [0, 1, 2]).auc is not None
    assert quality_of(*drawn(500, 2, 0), [0, 1]).auc is not None


@pytest.mark.parametrize(
    ("probabilities", "labels", "sentence"),
    [
        ([[0.5, 0.5]], ["c"], "labels contain 'c', but must be among the classes 'a', 'b'"),
        ([[0.5, 0.5]], ["a", "b"], r"probabilities must have shape \(2, 2\), got \(1, 2\)"),
        ([0.5], ["a"], r"probabilities must have shape \(1, 2\), got \(1,\)"),
        ([[0.5, np.nan]], ["a"], "probabilities must be numbers from 0 to 1"),
        ([[-0.5, 1.5]], ["a"], "probabilities must be numbers from 0 to 1"),
        (np.zeros((0, 2)), np.array([], str), "there are no records to compare predictions with"),
    ],
)
def test_a_mistake_is_one_sentence(probabilities: object, labels: object, sentence: str) -> None:
    with pytest.raises((ParameterError, DataError), match=sentence):
        quality_of(probabilities, labels, ["a", "b"])  # type: ignore[arg-type]


@given(st.integers(2, 60).map(lambda n: n * 4), st.integers(0, 99), st.integers(2, 4))
def test_precision_and_recall_are_those_of_scikit_learn(n: int, seed: int, classes: int) -> None:
    probabilities, labels = drawn(n, classes, seed)
    found = quality_of(probabilities, labels, range(classes)).by_class
    said = probabilities.argmax(axis=1)
    precision, recall, _, records = precision_recall_fscore_support(
        labels, said, labels=range(classes), zero_division=np.nan
    )
    assert [each.name for each in found] == [*range(classes)]
    assert [each.precision for each in found] == [None if np.isnan(p) else pytest.approx(p) for p in precision]
    assert [each.recall for each in found] == pytest.approx(recall)
    assert [each.records for each in found] == records.tolist()
    assert [each.predicted for each in found] == np.bincount(said, minlength=classes).tolist()


def test_a_rare_class_that_is_hardly_found_is_warned_of() -> None:
    labels = np.repeat([0, 1], [90, 10])

    def quality(found: int) -> Quality:
        said = np.concatenate([np.zeros(90, int), np.ones(found, int), np.zeros(10 - found, int)])
        return quality_of(np.eye(2)[said], np.array(["no", "yes"])[labels], ["no", "yes"])

    assert quality(3).fact == (
        "the model finds few records of the rare class 'yes', 10 of 100: recall 0.300, balanced accuracy 0.650 against "
        "0.500, accuracy 0.930 against 0.900 for always predicting the most frequent class; its scores rank the "
        "records (AUC 0.650), so choose a threshold other than one half"
    )
    assert quality(6).fact is None
    assert quality(6).finds_all_classes
    assert not quality(3).finds_all_classes
    common = quality_of(np.eye(2)[[0] * 7 + [1] * 2 + [0] * 3], [0] * 7 + [1] * 5, [0, 1])
    assert common.fact is None, "five of twelve are not rare"


def rare(auc: float) -> Quality:
    """Return the quality of probabilities that all lie below one half, of 120 records in 1,000 that rank like this."""
    draw = np.random.default_rng(0)
    labels = np.repeat([0, 1], [880, 120])
    scores = draw.standard_normal(1000) + labels * np.sqrt(2) * norm.ppf(auc)
    probability = 0.4 * norm.cdf(scores / 3)
    return quality_of(np.column_stack([1 - probability, probability]), labels, [0, 1])


def test_a_model_that_ranks_well_is_not_said_to_tell_nothing_apart() -> None:
    """No probability of a rare class is above one half; the warning is of the threshold."""
    found = rare(0.73)
    assert found.balanced_accuracy == 0.5
    assert found.auc == pytest.approx(0.73, abs=0.05)
    assert not found.hardly_tells
    assert found.fact is not None
    assert "hardly tells" not in found.fact
    assert found.fact.endswith(
        f"its scores rank the records (AUC {found.auc:.3f}), so choose a threshold other than one half"
    )


def test_of_three_classes_there_is_no_threshold_to_choose() -> None:
    labels = np.repeat([0, 1, 2], [80, 10, 10])
    probabilities = np.full((100, 3), [0.6, 0.2, 0.2]) + 0.1 * (np.eye(3)[labels] - 1 / 3)
    found = quality_of(probabilities, labels, range(3))
    assert found.auc == 1
    assert found.balanced_accuracy == pytest.approx(1 / 3)
    assert found.fact is not None
    assert found.fact.endswith("so divide each class's probability by its mean before you compare them")


def test_scores_that_rank_nothing_are_still_said_to_tell_nothing_apart() -> None:
    """The same probabilities, dealt to the records by chance, or against them."""
    for auc in (0.5, 0.27):
        found = rare(auc)
        assert found.hardly_tells
        assert found.fact is not None
        assert found.fact.startswith("the model hardly tells the classes apart: balanced accuracy 0.500 against 0.500")


def test_of_many_classes_the_first_are_shown() -> None:
    found = quality_of(np.eye(15), np.arange(15), range(15))
    assert len(found.lines_by_class) == 13
    assert found.lines_by_class[0] == "class 0: precision 1.000, recall 1.000 (1 record)"
    assert found.lines_by_class[-1] == "and 3 more classes"
    never = quality_of([[1, 0], [1, 0]], [0, 1], [0, 1])
    assert never.lines_by_class[1] == "class 1: no precision (never predicted), recall 0.000 (1 record)"
