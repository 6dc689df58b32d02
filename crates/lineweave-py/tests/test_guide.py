"""The examples of the user guide (docs/python.md, docs/guide.md), run as they are printed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GUIDE = next(p for p in (HERE / "python.md", HERE.parents[2] / "docs" / "python.md") if p.exists())
PATTERN = re.compile(r"(<!-- torch -->\n)?```python\n(.*?)```", re.DOTALL)
BLOCKS = PATTERN.findall(GUIDE.read_text())
PLAIN = [code for mark, code in BLOCKS if not mark]


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


def test_examples_print_what_they_say(tmp_path):
    printed, shown = run(tmp_path, PLAIN)
    assert len(shown) >= 5 and printed == shown


def test_the_example_to_begin_with(tmp_path):
    printed, shown = run(tmp_path, [code for _, code in PATTERN.findall(GUIDE.with_name("guide.md").read_text())])
    assert printed == shown != []


def test_the_example_for_torch(tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    printed, shown = run(tmp_path, [code for mark, code in BLOCKS if mark])
    assert printed == shown != []
