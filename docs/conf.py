"""Settings of Sphinx. Run `sphinx-build -W docs site`, then open site/index.html, which loads nothing from outside."""

from typing import Any

from sphinx.application import Sphinx

project = "Certified Unlearning"
html_title = project
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_show_search_summary = False  # It would fetch the found pages, which browsers refuse for pages opened as files.
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3

# Docstrings have Google's sections, and names in single backticks.
default_role = "py:obj"
autodoc_default_options = {
    "members": True,
    # These members come from Pydantic and scikit-learn.
    "exclude-members": "model_config, get_metadata_routing, set_fit_request, set_score_request",
}
autodoc_member_order = "bysource"
autodoc_mock_imports = ["PIL", "matplotlib", "mlflow", "seaborn"]  # so that the extra `docs` is enough
napoleon_use_ivar = True  # attributes that a docstring lists are not documented a second time


def is_bare_tuple_field(_app: Sphinx, _what: str, _name: str, item: object, *_: Any) -> bool | None:
    """Leave out fields of named tuples, whose only docstring is Python's "Alias for field number 0"."""
    return True if type(item).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> None:
    """Register the hooks for which Sphinx has no setting."""
    app.connect("autodoc-skip-member", is_bare_tuple_field)
