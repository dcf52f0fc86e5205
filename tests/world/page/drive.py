"""Drives the page in a headless Chromium: drive.py CASE READY_FILE LATCHFS.

Prints what was measured, then `met`. A case fails by an exception, a message on the page's console,
an uncaught error, or a request to another address than the admin address.
"""

import re
import shutil
import sys

from playwright.sync_api import sync_playwright

import cases
from server import PATIENCE, Server

# What the browser itself notes on the console, by case: a call that the case has refused, and
# connections to a server that is down.
EXPECTED = {
    "gates": r"status of 400 .*/api/v1/gates$",
    "restart": r"ERR_",
}


def main(name, ready_file, latchfs):
    server = Server(ready_file, latchfs)
    troubles = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(PATIENCE * 1000)
        watch(page, server, troubles, EXPECTED.get(name))
        token = server.ready.get("admin_token")
        page.goto(server.admin + (f"/?token={token}" if token else "/"))
        page.locator("#link", has_text="Live").wait_for()
        getattr(cases, name)(page, server)
        browser.close()
    assert not troubles, troubles
    print("met", flush=True)


def watch(page, server, troubles, expected):
    def on_console(message):
        text = f"{message.text} {message.location.get('url')}"
        if message.type in ("error", "warning") and not (expected and re.search(expected, text)):
            troubles.append(f"console: {text}")

    def on_request(request):
        if not request.url.startswith((server.admin, "data:")):
            troubles.append(f"another address: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: troubles.append(f"uncaught: {error}"))
    page.on("request", on_request)


if __name__ == "__main__":
    main(*sys.argv[1:])
