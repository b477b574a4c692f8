"""The home page's code runs and its comments say what it gives; every theorem has a place on the site."""

import math
import re
from pathlib import Path

import privamp
from privamp.proofs import proofs

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
CODE = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]


def test_the_numbers_in_the_comments_are_those_of_the_code() -> None:
    names: dict[str, object] = {}
    said = {}
    for line in CODE.splitlines():
        code, _, comment = line.partition("  # ")
        if re.match(r"\d", comment):
            said[code] = (eval(code, names), float(re.match(r"\d+\.\d+", comment)[0]))
        else:
            exec(code, names)
    assert len(said) == 3
    for code, (value, number) in said.items():
        rounded = math.floor if "lower" in code else math.ceil  # bounds are rounded outward
        assert rounded(1000 * value) / 1000 == number, code
    everybody = privamp.Gaussian(1.0).profile(privamp.Neighbors.ADD_REMOVE).epsilon(1e-6)
    assert f"{math.ceil(1000 * everybody) / 1000} without sampling" in CODE


def test_every_theorem_is_an_anchor_of_a_page_of_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert 'site_url: !ENV [SITE_URL, ""]' in site  # no address is made up
    for proof in proofs().values():
        assert re.search(rf" {re.escape(proof.page)}$", site, re.M), f"{proof.page} is not in the navigation"
        page = (ROOT / "docs" / proof.page).read_text(encoding="utf-8")
        assert page.count(f'<a id="{proof.id}"></a>') == 1
