"""Every page of the built site in a headless Chromium: at a phone's width and a desktop's, light and dark."""

from __future__ import annotations

import base64
import importlib.machinery
import importlib.util
import json
import os
import shutil
from pathlib import Path
from typing import Any

WIDTHS, SCHEMES = (360, 1280), ("light", "dark")
# Elements that are wider than the window, and are in nothing that scrolls. The theme slides its own drawers in from outside.
TOO_WIDE = """
(() => {
  const wrong = [], width = document.documentElement.clientWidth;
  const held = e => { for (; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== 'visible') return true; };
  if (document.documentElement.scrollWidth > width + 1) wrong.push('the page is ' + document.documentElement.scrollWidth + ' wide');
  for (const e of document.querySelectorAll('article *')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !held(e.parentElement)) wrong.push(e.tagName + ' reaches to ' + Math.round(box.right));
  }
  for (const e of document.querySelectorAll('article img')) if (!e.naturalWidth) wrong.push(e.src + ' is not shown');
  return wrong.slice(0, 5);
})()
"""


def chromium() -> Any:
    """The module of scripts/look, which drives a Chromium."""
    path = str(Path(__file__).resolve().parents[1] / "look")
    loader = importlib.machinery.SourceFileLoader("look_at", path)
    spec = importlib.util.spec_from_loader("look_at", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


# Types a word into the search, and counts what is found.
SEARCH = """
(async () => {
  const field = document.querySelector('[data-md-component=search-query]');
  const open = document.querySelector('#__search');
  field.focus(); open.checked = true; open.dispatchEvent(new Event('change')); field.value = 'barrier';
  for (const name of ['focus', 'input', 'keyup']) field.dispatchEvent(new Event(name, { bubbles: true }));
  for (let i = 0; i < 100; i++) {
    await new Promise(r => setTimeout(r, 100));
    const found = document.querySelectorAll('.md-search-result__item').length;
    if (found) return found;
  }
  return 0;
})()
"""


def page_of(browser: Any, page: Path, site: Path, scheme: str, width: int, pictures: Path) -> list[str]:
    """Opens a page, keeps a picture of it, and returns what is wrong."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable", session)
    browser.call("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Emulation.setDeviceMetricsOverride", session, width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.events.clear()
    browser.call("Page.navigate", session, url=page.as_uri())
    browser.until("Page.loadEventFired", session)
    wrong = browser.call("Runtime.evaluate", session, expression=TOO_WIDE, returnByValue=True)["result"]["value"]
    name = f"{page.relative_to(site).with_suffix('')}-{width}-{scheme}.png".replace("/", "-")
    (pictures / name).write_bytes(base64.b64decode(browser.call("Page.captureScreenshot", session, format="png")["data"]))
    if page == site / "index.html":
        said = browser.call("Runtime.evaluate", session, expression=SEARCH, awaitPromise=True, returnByValue=True)["result"]
        if not said.get("value"):
            wrong.append("the search finds nothing")
        (pictures / f"search-{width}-{scheme}.png").write_bytes(base64.b64decode(browser.call("Page.captureScreenshot", session, format="png")["data"]))
    for event in browser.events:
        method, what = event.get("method"), event.get("params", {})
        if method == "Log.entryAdded" and what["entry"]["level"] == "error":
            wrong.append(f"console: {what['entry']['text']}")
        elif method == "Runtime.exceptionThrown":
            wrong.append(f"console: {json.dumps(what['exceptionDetails'])[:300]}")
        elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith(("file:", "data:", "blob:")):
            wrong.append(f"it requests {what['request']['url']}")
    browser.call("Target.closeTarget", targetId=target)
    return [f"{page.relative_to(site)}, {width} pixels wide, {scheme}: {what}" for what in wrong]


def look(site: Path, pictures: Path) -> list[str]:
    """Returns the faults of the pages of a site. Pictures of them are kept."""
    module = chromium()
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, module.NAMES)), None)
    if program is None:
        return ["there is no Chromium here; apt-get install chromium, or name one by CHROMIUM"]
    pictures.mkdir(parents=True, exist_ok=True)
    pages = [p for p in sorted(site.rglob("*.html")) if "rustdoc" not in p.relative_to(site).parts and p.name != "404.html"]
    wrong: list[str] = []
    for scheme in SCHEMES:
        browser = module.Browser(program)  # Another one, since pages remember what they were shown in.
        try:
            wrong += [w for page in pages for width in WIDTHS for w in page_of(browser, page, site, scheme, width, pictures)]
        finally:
            browser.close()
    return wrong
