"""Sphinx: `sphinx-build -W docs site`, then open site/index.html; nothing on its pages is loaded from elsewhere."""

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
html_show_search_summary = False  # it would fetch the pages found, which a browser refuses for pages opened as files
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3

# The docstrings: Google's sections, single backticks for names.
default_role = "py:obj"
autodoc_default_options = {
    "members": True,
    # Pydantic's and scikit-learn's.
    "exclude-members": "model_config, get_metadata_routing, set_fit_request, set_score_request",
}
autodoc_member_order = "bysource"
autodoc_mock_imports = ["PIL", "matplotlib", "mlflow", "seaborn"]  # so that the extra `docs` is enough
napoleon_use_ivar = True  # attributes that a docstring lists are not documented a second time


def is_bare_tuple_field(_app: Sphinx, _what: str, _name: str, item: object, *_: Any) -> bool | None:
    """Leave out fields of named tuples, of which Python itself says "Alias for field number 0"."""
    return True if type(item).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> None:
    """Register what Sphinx has no setting for."""
    app.connect("autodoc-skip-member", is_bare_tuple_field)
