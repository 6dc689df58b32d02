"""The Python examples of docs/, run as they are printed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCS = next(p / "docs" for p in HERE.parents if (p / "docs" / "index.md").exists())
PATTERN = re.compile(r"(<!-- torch -->\n)?```python\n(.*?)```", re.DOTALL)
# A page's blocks are one script: of numpy alone, or marked as needing torch.
PAGES = {
    (str(page.relative_to(DOCS)), marked): blocks
    for page in sorted(DOCS.rglob("*.md"))
    for marked in (False, True)
    if (blocks := [code for mark, code in PATTERN.findall(page.read_text()) if bool(mark) == marked])
}


def run(tmp_path, blocks):
    """The blocks as one script; what it prints and what the comments say that it prints."""
    head = "import lineweave\nimport numpy as np\n"
    shown, body = [], []
    for code in blocks:
        lines = []
        for line in code.splitlines():
            said = re.match(r"(\s*)print\(.*\)\s+# (.*)$", line)
            if said:
                shown.append(said[2])
            lines.append(line)
        # With the start method "spawn" the script is imported again by every rank: what runs stands behind the guard.
        defined = [l for l in lines if l.startswith((" ", "def ", "import ", "from ")) or not l]
        started = [l for l in lines if l not in defined]
        joined = "\n".join(lines)
        if "with ProcessPoolExecutor" in joined:
            at = lines.index("with ProcessPoolExecutor(3) as pool:")
            defined, started = lines[:at], lines[at:]
        body.append("\n".join(defined) + "\nif __name__ == '__main__':\n    " + "\n    ".join(started) + "\n")
    script = tmp_path / "guide.py"
    script.write_text(head + "\n".join(body))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), shown


@pytest.mark.parametrize(("page", "torch"), PAGES)
def test_examples_print_what_they_say(tmp_path, page, torch):
    if torch and importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    printed, shown = run(tmp_path, PAGES[page, torch])
    assert printed == shown != []


def test_pages_with_examples_are_found():
    assert {("tutorials/python.md", False), ("reference/python.md", False), ("tutorials/pytorch.md", True)} <= set(PAGES)
