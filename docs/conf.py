"""Settings of the documentation site; `make docs` builds it into docs/_build/html."""

import sys
from pathlib import Path

from laplaceconfidence import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "LaplaceConfidence"
author = "The LaplaceConfidence developers"
copyright = author
version = release = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "mathml",
    "api_pages",
    "command_pages",
    "method_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_ext"]
nitpicky = True
smartquotes = False  # "--set" in help texts is not a dash
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_typehints = "none"  # the docstrings state the types
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"LaplaceConfidence {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "installation": [], "benchmarks": [], "glossary": [], "changelog": []}
html_theme_options = {
    "logo": {"text": "LaplaceConfidence"},
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
