"""Everything is in pyproject.toml, but one thing: a wheel carries the pages with the proofs, for `privamp theorem`."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


class WithProofs(build_py):
    """Copies docs/ beside the index of theorems."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if self.editable_mode:
            return
        for page in (HERE / "docs").rglob("*.md"):
            target = Path(self.build_lib, "privamp", "proofs", "pages", page.relative_to(HERE / "docs"))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target)


setup(cmdclass={"build_py": WithProofs})
