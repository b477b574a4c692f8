"""Run the notebooks of this folder and store what they show: `python docs/tutorials/execute.py [NAME …]`.

The cells run one after the other in this process, in an empty folder, and are shown by the methods that Jupyter calls
(`_repr_html_`, `_repr_png_`). The tests run them in the same way, and fail where a stored number differs. Starting a
Jupyter kernel for each takes several times as long as the cells do.
"""

import ast
import io
import json
import os
import sys
import tempfile
from base64 import b64encode
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Output = dict[str, Any]


def outputs_of(notebook: dict[str, Any]) -> list[list[Output]]:
    """What every code cell prints and shows, in the terms of the notebook format."""
    names: dict[str, Any] = {"__name__": "__main__"}
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            return [run_cell("".join(cell["source"]), names, number) for number, cell in enumerate(cells, 1)]
        finally:
            os.chdir(home)


def run_cell(source: str, names: dict[str, Any], number: int) -> list[Output]:
    """Run one cell; the value of a last line that is an expression is shown."""
    tree, file = ast.parse(source), f"cell {number}"
    shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, file, "exec"), names)
        value = eval(compile(ast.Expression(shown.value), file, "eval"), names) if shown else None
    text = printed.getvalue()
    outputs = [{"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}] if text else []
    if value is not None:
        data = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data_of(value)}
        outputs.append(data)
    return outputs


def data_of(value: Any) -> dict[str, Any]:
    """A value as Jupyter would show it."""
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    if html is not None:  # a figure has the method, and no HTML
        data["text/html"] = html.splitlines(keepends=True)
    if hasattr(value, "_repr_png_"):
        data["image/png"] = b64encode(value._repr_png_()).decode("ascii")
    return data


def store(path: Path) -> None:
    """Run a notebook and write its outputs into its file."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    found = iter(outputs_of(notebook))
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell["outputs"], cell["execution_count"] = next(found), number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    for path in [HERE / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(HERE.glob("*.ipynb")):
        store(path)
