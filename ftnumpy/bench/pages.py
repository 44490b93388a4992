"""What asv's pages lack: the scripts that they fetch from elsewhere, and the text of the patches."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from ftnumpy.bench.history import Step
from ftnumpy.census.report import write
from ftnumpy.errors import BuildError

# As in asv.conf.json, where show_commit_url leads to patches.html.
HASH_LENGTH = 10

_PAGES = Environment(
    # The look is that of the census's pages.
    loader=ChoiceLoader([PackageLoader("ftnumpy.bench", "templates"), PackageLoader("ftnumpy.census", "pages")]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def write_patches(pages: Path, steps: Sequence[Step]) -> None:
    """``patches.html``, to which asv's graphs link: each commit's patch."""
    template = _PAGES.get_template("patches.html.jinja")
    write(pages / "patches.html", template.render(title="The patches", steps=steps, hash_length=HASH_LENGTH))


def bring_scripts(pages: Path, vendor: Path) -> None:
    """Let ``index.html`` use the scripts and styles in ``vendor``, and put them beside it.

    Raises `BuildError` for one that ``vendor`` lacks.
    """
    shutil.copytree(vendor, pages / "vendor")
    index = pages / "index.html"
    text = re.sub(
        r'(src|href)="https://[^"]*/([^"/]+\.(?:js|css))"( (?:integrity|crossorigin|referrerpolicy)="[^"]*")*',
        lambda found: f'{found[1]}="vendor/{_own(found[2], vendor)}"',
        index.read_text(encoding="utf-8"),
    )
    write(index, text)


def _own(name: str, vendor: Path) -> str:
    """Our file for asv's ``name``, which may be a minified form of it."""
    for candidate in (name, name.replace(".min.", ".")):
        if (vendor / candidate).is_file():
            return candidate
    raise BuildError(f"asv's page uses {name}, which {vendor} lacks; add it there, or pin the asv that came before")
