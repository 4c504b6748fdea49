"""The accountants' declarations: names, order, what each compares with and rests on, and how its lines look."""

from itertools import combinations, pairwise
from typing import get_args

import pytest

from certified_unlearning.accounting import Schedule
from certified_unlearning.accounting.accountant import PROJECTION, Accountant
from certified_unlearning.accounting.accountants import ACCOUNTANTS, NO_ACCOUNTANT
from certified_unlearning.accounting.assumptions import Arithmetic, Assumption, assumptions, comparator, guarantee
from certified_unlearning.accounting.cyclic.accountants import ACCOUNTANTS as CYCLIC
from certified_unlearning.accounting.descent.accountants import ACCOUNTANTS as DESCENT
from certified_unlearning.accounting.guarantees import descent_guarantee
from certified_unlearning.accounting.langevin.accountants import ACCOUNTANTS as LANGEVIN
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.looks import Look, accountant_look, row_look
from certified_unlearning.vocabulary import Smoothness
from tests.accounting.paper_settings import MNIST, for_descent

AT_STATIONARITY = "the same learning run from scratch on the data after the removals"
NOISED_ALIKE = "a retrained model published with the same noise"
FROM_THE_SAME_START = (
    "the same learning run from the same start on the data after the removals, for the same total number of steps"
)
COMPARATORS = {
    ("lsi", "least-sigma"): AT_STATIONARITY,
    ("lsi", "least-steps"): AT_STATIONARITY,
    ("lsi-tight", "least-sigma"): AT_STATIONARITY,
    ("lsi-tight", "least-steps"): AT_STATIONARITY,
    ("shifted", "least-sigma"): FROM_THE_SAME_START,
    ("shifted", "least-steps"): FROM_THE_SAME_START,
    ("descent-to-delete N.1", "secret-state"): NOISED_ALIKE,
    ("descent-to-delete N.2", "published-state"): NOISED_ALIKE,
    ("descent-to-delete shifted", "secret-state"): "a model retrained from the same start on the data after the "
    "removals, for the same total number of steps, and published with the same noise",
    ("descent-to-delete shifted", "published-state"): "a retrained model that is published with the same noise at "
    "the same times, and continues from each published model",
    ("descent-to-delete conditional", "published-state"): "a model retrained from the same start on the data after the "
    "removals, published with the same noise, which is added once",
    ("cyclic", "least-steps"): "the same steps of learning and of every request, in the same order and from the same "
    "start, on data that never contained the removed records",
}
STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=200)


def own(name: str) -> Accountant:
    """An accountant as somebody else's package would declare it: without a look."""
    return Accountant(name, name, "langevin", {"least-steps": f"what {name} compares with"}, (PROJECTION,))


def test_the_names_are_those_of_rows_and_certificates_in_the_order_of_figures_and_tables() -> None:
    assert list(LANGEVIN) == ["lsi", "lsi-tight", "shifted"]
    assert list(DESCENT) == [f"descent-to-delete {form}" for form in ("N.1", "N.2", "shifted", "conditional")]
    assert list(ACCOUNTANTS) == [*LANGEVIN, *DESCENT, *CYCLIC]
    assert NO_ACCOUNTANT not in ACCOUNTANTS
    for name, accountant in ACCOUNTANTS.items():
        assert accountant.name == name


def test_every_accountant_speaks_of_forms_of_a_declared_mechanism() -> None:
    for accountant in ACCOUNTANTS.values():
        mechanism = declared.mechanism(accountant.mechanism)
        assert set(accountant.variants) <= {*(mechanism.states or ("least-sigma", "least-steps"))}


def test_every_form_has_what_it_is_compared_with() -> None:
    forms = [(name, variant) for name, accountant in ACCOUNTANTS.items() for variant in accountant.variants]
    assert {form: comparator(*form) for form in forms} == {
        form: f"{words}; the guarantee covers the model published last" for form, words in COMPARATORS.items()
    }


def test_every_form_of_descent_to_delete_has_its_analysis() -> None:
    for accountant in DESCENT.values():
        assert list(accountant.analyses) == list(accountant.variants)


@pytest.mark.parametrize("smoothness", get_args(Smoothness))
def test_a_guarantee_is_a_bound_unless_its_theorem_is_applied_outside_its_statement_or_a_constant_is_of_the_data(
    smoothness: Smoothness,
) -> None:
    due = dict.fromkeys(ACCOUNTANTS, "upper bound")
    due |= dict.fromkeys(("descent-to-delete N.1", "descent-to-delete N.2"), "as published")
    if smoothness == "spectral":
        due = dict.fromkeys(due, "heuristic")
    assert {name: guarantee(name, smoothness) for name in ACCOUNTANTS} == due
    assert guarantee(NO_ACCOUNTANT, smoothness) == "exact"


def test_what_is_printed_in_a_paper_says_so() -> None:
    printed = {each.name for each in ACCOUNTANTS.values() if each.source == "paper"}
    assert printed == {"lsi", "descent-to-delete N.1", "descent-to-delete N.2"}


@pytest.mark.parametrize(
    ("statement", "status", "names"),
    [
        ("learning has reached its stationary distribution", "checked", ["lsi", "lsi-tight"]),
        (
            "a projection onto a ball does not loosen the bounds",
            "checked",
            ["lsi", "lsi-tight", "shifted", "descent-to-delete shifted", "descent-to-delete conditional", "cyclic"],
        ),
        (
            "the theorem, which is stated for adding or removing a record, also holds for this adjacency",
            "assumed",
            ["descent-to-delete N.1", "descent-to-delete N.2"],
        ),
    ],
)
def test_an_assumption_is_stated_by_those_that_rest_on_it(statement: str, status: str, names: list[str]) -> None:
    stated = {name: [each.status for each in stated_by(name) if each.statement == statement] for name in ACCOUNTANTS}
    assert stated == {name: [status] if name in names else [] for name in ACCOUNTANTS}


def test_every_accountant_rests_on_what_all_need_and_says_nothing_twice() -> None:
    shared = [each.statement for each in stated_by("shifted")[:-1]]
    for name in ACCOUNTANTS:
        statements = [each.statement for each in stated_by(name)]
        assert statements[: len(shared)] == shared
        assert len(statements) > len(shared)
        assert len(set(statements)) == len(statements)


def stated_by(name: str) -> tuple[Assumption, ...]:
    preprocessing = Assumption(statement="preprocessing", status="checked", by="nothing was done")
    return assumptions(name, "bound", "float64", preprocessing, 2, "seed", "replace", Arithmetic(1e-12, 1e-12, 1e-12))


@pytest.mark.parametrize("steps", [(150,), (150, 160, 155)])
@pytest.mark.parametrize("sigma", [1e-6, 1e-5, 1e-4])
@pytest.mark.parametrize(
    ("printed", "variant"), [("descent-to-delete N.1", "secret-state"), ("descent-to-delete N.2", "published-state")]
)
def test_the_printed_analysis_of_a_form_states_no_less_than_the_tightened_one(
    printed: str, variant: str, sigma: float, steps: tuple[int, ...]
) -> None:
    schedule = Schedule(sigma=sigma, records_per_request=1, steps=steps, learning_steps=1000)
    loose, tight = (
        descent_guarantee(
            for_descent(MNIST), schedule, delta=1e-5, accountant=name, variant=variant, dimension=784
        ).epsilon
        for name in (printed, "descent-to-delete shifted")
    )
    assert loose > tight > 0


def test_accountants_that_one_figure_shows_differ_in_name_colour_and_marker() -> None:
    for one, other in combinations(ACCOUNTANTS.values(), 2):
        if one.mechanism == other.mechanism and not {*one.variants} & {*other.variants}:
            continue
        names = [declared.mechanism(each.mechanism).method(each.form) for each in (one, other)]
        assert names[0] != names[1]
        looks = [accountant_look(each, STYLE) for each in (one, other)]
        assert looks[0].color != looks[1].color
        assert looks[0].marker != looks[1].marker


def test_forms_that_no_figure_shows_together_share_name_and_look() -> None:
    one, other = ACCOUNTANTS["descent-to-delete N.1"], ACCOUNTANTS["descent-to-delete N.2"]
    assert (one.form, accountant_look(one, STYLE)) == (other.form, accountant_look(other, STYLE))


def test_a_sharper_accountant_is_drawn_over_a_looser_one_with_a_smaller_marker() -> None:
    for names in (tuple(LANGEVIN), ("descent-to-delete N.1", "descent-to-delete shifted")):
        looks = [accountant_look(ACCOUNTANTS[name], STYLE) for name in names]
        assert all(below.layer < above.layer for below, above in pairwise(looks))
        assert all(below.marker_size > above.marker_size for below, above in pairwise(looks))


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> list[Accountant]:
    """Two accountants of somebody else, known beside this package's."""
    declared_elsewhere = [own("mine"), own("yours")]
    for accountant in declared_elsewhere:
        monkeypatch.setitem(ACCOUNTANTS, accountant.name, accountant)
    return declared_elsewhere


def test_an_accountant_without_a_look_gets_one_that_is_free(others: list[Accountant]) -> None:
    found: dict[str, Look] = {name: accountant_look(each, STYLE) for name, each in ACCOUNTANTS.items()}
    for accountant in others:
        rest = [look for name, look in found.items() if name != accountant.name]
        assert found[accountant.name].marker not in {look.marker for look in rest}
        assert found[accountant.name].color not in [look.color for look in rest]


def test_the_rows_of_such_an_accountant_are_drawn_with_its_look(others: list[Accountant]) -> None:
    row = {"accountant": "mine", "mechanism": "langevin", "variant": "least-steps", "sigma": 0.1}
    assert row_look(row, STYLE) == accountant_look(others[0], STYLE)
    assert row_look(row | {"mechanism": "retraining"}, STYLE).marker == ""


def test_a_free_look_stays_when_more_accountants_come(
    others: list[Accountant], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [accountant_look(each, STYLE) for each in others]
    monkeypatch.setitem(ACCOUNTANTS, "theirs", own("theirs"))
    assert [accountant_look(each, STYLE) for each in others] == before


def test_the_words_of_such_an_accountant_are_its_own(others: list[Accountant]) -> None:
    assert comparator("mine", "least-steps") == "what mine compares with; the guarantee covers the model published last"
    assert guarantee("mine", "bound") == "upper bound"
    assert stated_by("mine")[-1] == PROJECTION
