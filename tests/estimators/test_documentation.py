"""Every parameter of every estimator is described where people look, in the words of the class that declares it."""

import inspect

import pytest

from certified_unlearning import estimators
from certified_unlearning.estimators.documentation import complete
from certified_unlearning.estimators.network.classifier import CertifiedMLPClassifier


@pytest.mark.parametrize("name", estimators.__all__)
def test_help_describes_each_parameter_once(name):
    made = getattr(estimators, name)
    lines = made.__doc__.splitlines()
    for parameter in inspect.signature(made).parameters:
        assert sum(line.startswith(f"    {parameter}: ") for line in lines) == 1, parameter
    assert [lines.count(title) for title in ("Args:", "Attributes:")] == [1, 1]


def test_a_class_has_the_last_word_on_a_parameter_that_it_describes_itself():
    class Base:
        """A base.

        Args:
            first: Of the base.
            second: Of the base,
                in two lines.
        """

    class Made(Base):
        """A class.

        Args:
            third: Its own.
            first: Its own, too.
        """

    complete(Base)
    complete(Made)
    assert Made.__doc__ == (
        "A class.\n\nArgs:\n    third: Its own.\n    first: Its own, too.\n    second: Of the base,\n"
        "        in two lines.\n"
    )


def test_the_network_is_no_linear_model_and_has_no_intercept_to_describe():
    assert "fit_intercept" not in CertifiedMLPClassifier.__doc__
    assert not any("linear" in base.__module__.rpartition(".")[2] for base in CertifiedMLPClassifier.__mro__)
