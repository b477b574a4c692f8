"""Executed notebooks as pages of the site, when it is built: their text, code and stored outputs become Markdown.

The format is JSON with few kinds of cells, so this needs neither nbconvert nor a plugin, which would bring forty
packages and a theme of their own. Nothing is executed here. The notebook itself can be downloaded from its page.
"""

import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig, **kwargs: Any) -> Files:
    """MkDocs calls this with all files: every notebook gets a page beside it."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = page_of(notebook.content_string, Path(notebook.src_uri).name)
        files.append(File.generated(config, notebook.src_uri.removesuffix(".ipynb") + ".md", content=text))
    return files


def page_of(notebook: str, name: str) -> str:
    """The Markdown of a notebook."""
    parts = [part for cell in json.loads(notebook)["cells"] for part in _cell(cell)]
    return "\n\n".join((*parts, f"[Download this notebook]({name}){{ download }}")) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(_output(output) for output in cell.get("outputs", []))]


def _output(output: dict[str, Any]) -> str:
    """The richest form of what was shown; HTML is kept on one line, because Markdown ends raw HTML at a blank one."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = f'<img alt="what the code above draws" src="data:image/png;base64,{data["image/png"].strip()}">'
        return f'<div class="notebook-output">{picture}</div>'
    if "text/html" in data:
        html = " ".join("".join(data["text/html"]).split())
        return f'<div class="notebook-output">{html}</div>'
    text = "".join(data.get("text/plain", output.get("text", []))).rstrip("\n")
    return f"```{{ .text .no-copy }}\n{text}\n```"
