"""The cases: each is given the page, opened and live, and the server."""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time

from playwright.sync_api import expect

from server import PATIENCE, request

EVIL = '<img src=x onerror="window.hacked=1">'

expect.set_options(timeout=PATIENCE * 1000)


def until(what, condition):
    """Waits until `condition` gives something true."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.01)
    return found


def unfold(page, name):
    """Unfolds a section, if it is folded: empty ones are."""
    section = page.locator(f"#section-{name}")
    if not section.evaluate("(node) => node.open"):
        section.locator("> summary").click()


def form(page, label):
    """A form of the test bench, which is folded while its section lists something."""
    fold = page.locator("details.add", has=page.get_by_role("form", name=label, include_hidden=True))
    if not fold.evaluate("(node) => node.open"):
        fold.locator("> summary").click()
    return page.get_by_role("form", name=label)


def hold(server, path, client="test", **more):
    body = {"path": path, "disposition": "open-if", "access": "rw", "share_mode": "none", **more}
    return server.do("POST", "holds", body, client)["handle"]


def note(page, text):
    expect(page.locator(".note", has_text=text).last).to_be_visible()


def cut_off(select):
    """The options of a select that are wider than the select, without its arrow."""
    return select.evaluate("""(node) => { const pen = document.createElement('canvas').getContext('2d');
        pen.font = getComputedStyle(node).font;
        return [...node.options].map((one) => one.text).filter((text) => pen.measureText(text).width > node.clientWidth - 36); }""")


# --- Live ---------------------------------------------------------------------------------------

# Notes when a refusal of a path is drawn: an observer sees the change before the next frame.
SEEN = """(path) => { window.seen = new Promise((done) => {
  const look = () => [...document.querySelectorAll('.event.refused')].some((row) => !row.hidden && row.textContent.includes(path));
  new MutationObserver((_, observer) => { if (look()) { observer.disconnect(); done(Date.now()); } })
    .observe(document.getElementById('events-list'), { subtree: true, childList: true, characterData: true, attributes: true });
}); }"""


def conflict(page, server):
    took = []
    for n in range(5):
        path = f"/report{n}.xlsx"
        handle = hold(server, path, "the holder")
        page.evaluate(SEEN, path)
        asked = time.time() * 1000
        status, answer = server.api("POST", "holds", {"path": path, "access": "r"}, "the other")
        assert (status, answer["error"]["kind"]) == (409, "sharing_violation"), answer
        took.append(page.evaluate("window.seen") - asked)
        below = page.locator(".event.below", has_text="the holder").last
        expect(below).to_be_visible()
        expect(below).to_contain_text("access rw, shares none")
        server.do("DELETE", f"holds/{handle}")
    took.sort()
    print(f"a refusal is on the page after {took[2]:.0f} ms (median of 5, from before the request; the longest {took[4]:.0f} ms)")
    assert took[0] < PATIENCE * 1000
    # The details name the holder; the timeline has a lane for the client.
    page.locator(".event.refused").last.click()
    expect(page.locator("#detail")).to_contain_text("sharing violation")
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_be_hidden()


# --- Buttons ------------------------------------------------------------------------------------


def ahead(server):
    """By how many seconds the server's clock is ahead."""
    clock = server.ask("clock")
    stamp = lambda text: time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float("0" + text[19:].rstrip("Z"))
    return stamp(clock["now"]) - stamp(clock["system"])


def clock(page, server):
    expect(page.locator("#clock-state")).to_have_text("In step")
    total = 0
    for label, seconds in (("+1 s", 1), ("+15 s", 15), ("+61 s", 61)):
        page.get_by_role("button", name=label, exact=True).click()
        total += seconds
        until(label, lambda: abs(ahead(server) - total) < 0.5)
    page.get_by_label("Advance the clock by").fill("2m")
    page.get_by_role("button", name="Advance", exact=True).click()
    until("2m", lambda: abs(ahead(server) - total - 120) < 0.5)
    expect(page.locator("#clock-state")).to_have_text("+3 min 17 s")
    # The page says which clock it shows where.
    expect(page.get_by_label("The server's clock")).to_contain_text("Server clock (UTC)")
    expect(page.locator("#events")).to_contain_text("System time (UTC)")
    turned = page.locator(".event.across", has_text="server clock shows").last
    expect(turned.locator(".at")).to_have_attribute("title", re.compile(r"^Server clock: \d\d:\d\d:\d\d"))
    page.get_by_role("button", name="Freeze").click()
    until("frozen", lambda: server.ask("clock")["frozen"])
    expect(page.locator("#clock-state")).to_have_text("Frozen")
    shown = page.locator("#clock-now").inner_text()
    page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 300))")
    assert page.locator("#clock-now").inner_text() == shown, "a frozen clock stands"
    page.get_by_role("button", name="Run").click()
    until("running", lambda: not server.ask("clock")["frozen"])
    page.get_by_label("Advance the clock by").fill("soon")
    page.get_by_role("button", name="Advance", exact=True).click()
    note(page, "Write a time as")


def files(page, server):
    handle = hold(server, "/open.txt")
    row = page.locator(".item", has_text="share/open.txt")
    expect(row).to_contain_text("rw")
    expect(row).to_contain_text("none")
    page.get_by_role("button", name=f"Force-close handle {handle}").click()
    until("the handle to be closed", lambda: not server.ask("handles")["handles"])
    expect(row).to_be_hidden()
    note(page, f"Handle {handle}")
    # Locks are drawn as bars over the file.
    hold(server, "/locked.bin", locks=[{"start": 0, "length": 100}, {"start": 4096, "length": 1, "exclusive": False}])
    expect(page.locator("#section-locks")).to_have_attribute("open", "")
    expect(page.locator(".lock-card h3")).to_have_text("share/locked.bin")
    expect(page.locator("svg rect.exclusive")).to_have_count(1)
    expect(page.locator("svg rect.shared")).to_have_count(1)
    # A file that was deleted while open.
    shared = {"access": "rwd", "share_mode": "rwd"}
    hold(server, "/doomed.txt", "the last reader", **shared)
    server.do("DELETE", f"holds/{hold(server, '/doomed.txt', delete_on_close=True, **shared)}")
    expect(page.locator("#panel-pending .item")).to_contain_text("share/doomed.txt")
    expect(page.locator("#panel-pending .item")).to_contain_text("removed when the last reader closes")
    page.get_by_role("button", name="Undelete /doomed.txt").click()
    until("the mark to be gone", lambda: not server.ask("pending")["pending"])
    expect(page.locator("#section-pending")).not_to_have_attribute("open", "")
    unfold(page, "pending")
    expect(page.locator("#section-pending")).to_contain_text("No file waits")


def leases(page, server):
    server.run("mk", "blob:docs")
    assert server.blob("PUT", "docs", "a.txt", b"one")[0] == 201
    lease = {"x_ms_lease_action": "acquire", "x_ms_lease_duration": "60"}
    base, query = server.sas("blob:docs", "rcwdl").split("?", 1)
    headers = {name.replace("_", "-"): value for name, value in lease.items()}
    assert request("PUT", f"{base}/a.txt?comp=lease&{query}", b"", headers)[0] == 201
    row = page.locator("#panel-leases .item", has_text="blob:docs/a.txt")
    expect(row).to_contain_text("leased")
    server.do("POST", "clock", {"freeze": True})
    expect(page.locator("#clock-state")).to_have_text("Frozen")
    server.do("POST", "clock", {"advance_ms": 15000})
    left = lambda: row.locator(".chip").last.inner_text().split()[-1]
    until("the time left to jump", lambda: left() in ("0:45", "0:44", "0:43", "0:42", "0:41", "0:40"))
    page.get_by_role("button", name="Break the lease of blob:docs/a.txt").click()
    expect(row).to_be_hidden()
    assert server.blob("PUT", "docs", "a.txt", b"two")[0] == 201
    # A message that a client took.
    server.run("mk", "queue:jobs")
    server.run("put", "queue:jobs", stdin="hello")
    server.run("get", "queue:jobs")
    row = page.locator("#panel-messages .item")
    expect(row).to_contain_text("queue:jobs/")
    page.get_by_role("button", name="+61 s").click()
    expect(row).to_be_hidden()


def gates(page, server):
    server.run("mk", "blob:docs")
    unfold(page, "gates")
    add = form(page, "Add a gate")
    add.locator("[name=operation]").fill("Put Blobb")
    add.get_by_role("button", name="Add gate").click()
    expect(add.get_by_role("alert")).to_contain_text("Put Blobb")
    add.locator("[name=operation]").fill("Put Blob")
    add.locator("[name=path]").fill("docs/*")
    add.get_by_role("button", name="Add gate").click()
    expect(page.locator("#panel-gates .item")).to_contain_text("Put Blob  docs/*")
    expect(page.locator(".event.across").last).to_contain_text("gate 1 added Put Blob docs/*")
    assert not cut_off(add.locator("[name=at]"))
    answers = []
    puts = [threading.Thread(target=lambda n=n: answers.append(server.blob("PUT", "docs", f"{n}.txt", b"x")[0])) for n in range(3)]
    for put in puts:
        put.start()
    expect(page.locator("#gated h2")).to_have_text("3 requests wait at gate 1")
    assert answers == []
    for row in page.locator("#gated .gated-row").all():
        expect(row.get_by_role("button")).to_have_text("Let this one go first")
    page.locator("#gated").get_by_role("button", name="docs/1.txt").click()
    puts[1].join(PATIENCE)
    assert answers == [201]
    expect(page.locator("#gated h2")).to_have_text("2 requests wait at gate 1")
    # The longest waiting one, by its key.
    page.locator("#section-gates > summary").focus()
    page.keyboard.press("g")
    expect(page.locator("#gated h2")).to_have_text("1 request waits at gate 1")
    expect(page.locator("#gated .gated-row button")).to_have_text("Let go")
    page.get_by_role("button", name="Let all requests at gate 1 go").click()
    expect(page.locator("#gated")).to_be_hidden()
    for put in puts:
        put.join(PATIENCE)
    assert answers == [201] * 3
    # A client that goes away while its request waits.
    client = server.start_put("docs", "gone.txt")
    expect(page.locator("#gated h2")).to_have_text("1 request waits at gate 1")
    # A client on this machine is its program and process.
    me = f"{pathlib.Path('/proc/self/comm').read_text().strip()} {os.getpid()}"
    expect(page.locator("#gated .who")).to_have_text(f"{me} (tester)")
    waits = page.locator(".event.held", has_text="gone.txt").last
    expect(waits.locator(".who")).to_have_text(f"{me} tester")
    client.close()
    expect(page.locator("#gated")).to_be_hidden()
    expect(page.locator(".event.held", has_text="gone.txt").last).to_contain_text("ended at the gate")
    # A command is named by its program.
    server.run("gate", "remove", "1")
    expect(page.locator(".event.across .who").last).to_have_text(re.compile(r"^latchfs \(pid \d+\)$"))
    server.do("POST", "gates", {"operation": "Put Blob"})
    page.get_by_role("button", name="Remove gate 2").click()
    until("the gate to be gone", lambda: not server.ask("gates")["gates"])
    expect(page.locator("#section-gates")).to_contain_text("No gates.")


# Where a node is, within what is seen of the window.
IN_VIEW = """(node) => { const { top, bottom, left, right, height } = node.getBoundingClientRect();
    return height > 0 && top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth; }"""


def rivals(page, server):
    """Two programs at one gate, beside idle ones: who waits, against whom, and the buttons are in view."""
    server.run("mk", "blob:docs")
    for n in range(8):
        for _ in range(3):
            server.blob("PUT", "docs", f"idle{n}.txt", b"x", user_agent=f"idle-{n}/1")
    server.do("POST", "gates", {"operation": "Put Blob", "path": "docs/todo.json"})
    base, query = server.sas("blob:docs", "rcwdl").split("?", 1)
    put = ["curl", "-s", "-X", "PUT", "-H", "x-ms-blob-type: BlockBlob", "-d", "x", "-A"]
    writers = [subprocess.Popen([*put, agent, f"{base}/todo.json?{query}"]) for agent in ("first/1", "second/1")]
    expect(page.locator("#gated h2")).to_have_text("2 requests wait at gate 1")
    for size in ((1440, 900), (420, 860)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        for writer, rival in zip(writers, reversed(writers)):
            row = page.locator(".gated-row", has=page.locator(".who", has_text=f"curl {writer.pid} ("))
            expect(row).to_contain_text(f"against curl {rival.pid} (")
            assert row.evaluate(IN_VIEW), (size, writer)
            assert row.get_by_role("button", name="todo.json").evaluate(IN_VIEW), (size, writer)
        assert page.get_by_role("button", name="Let all go", exact=True).first.evaluate(IN_VIEW), size
    page.set_viewport_size({"width": 1440, "height": 900})
    # Their lanes come first; those of clients that do something else are not drawn.
    expect(page.locator("#timeline-idle")).to_have_text(re.compile(r"^\d+ idle clients$"))
    assert page.locator("#timeline-canvas").evaluate(IN_VIEW)
    page.locator("#timeline-idle").click()
    expect(page.locator("#timeline-idle")).to_have_attribute("aria-pressed", "true")
    page.locator("#gated").get_by_role("button", name="Let all go").click()
    for writer in writers:
        writer.wait(PATIENCE)
    expect(page.locator("#gated")).to_be_hidden()
    # A request that waits alone is shown what another client did last.
    alone = server.start_put("docs", "todo.json")
    expect(page.locator(".gated-row .rival")).to_have_text(re.compile(r"^last Put Blob 201 by curl \d+ \((first|second)\) .* ago$"))
    page.locator(".gated-row button").click()
    assert alone.getresponse().status == 201


def holder(page, server):
    """A refusal leads to the client in the way: its lane, its handle, and since when by one clock."""
    server.do("POST", "clock", {"advance_ms": 61000})
    handle = hold(server, "/late.xlsx", "excel")
    assert server.api("POST", "holds", {"path": "/late.xlsx"}, client="report.py")[0] == 409
    below = page.locator(".event.below").last
    expect(below).to_have_text(re.compile(r"^excel has it open: access rw, shares none, for [\d.]+ m?s$"))
    below.get_by_role("button", name="excel").click()
    expect(page.locator(".item.marked")).to_contain_text("share/late.xlsx")
    expect(page.locator("#detail")).to_contain_text(str(handle))
    expect(page.locator(".event.selected")).to_contain_text("opened")
    # The details are words; the server's clock is named where it differs.
    page.locator(".event.refused").last.click()
    expect(page.locator("#detail")).to_contain_text("(server clock: ")
    words = page.locator("#detail dt").all_inner_texts()
    assert words and not any("_" in word for word in words), words
    server.do("DELETE", f"holds/{handle}")
    # A reason that is longer than its line is wrapped.
    server.run("mk", "blob:docs")
    server.blob("PUT", "docs", "a.txt", b"x", user_agent="a-program-with-a-long-name-of-a-product-that-nobody-can-say/1")
    assert server.blob("PUT", "docs", "a.txt", b"y", if_none_match="*")[0] == 409
    assert server.blob("PUT", "docs", "a.txt", b"y", if_match='"0x8D0000000000000"')[0] == 412
    what = page.locator(".event.below", has_text="a-program").last.locator(".what")
    expect(what).to_contain_text("by Put Blob")
    assert what.evaluate("(node) => node.scrollHeight <= node.parentNode.clientHeight + 1")
    assert what.locator("..").evaluate("(node) => node.clientHeight") > 40


def connect(page, server):
    """The connection string, and a tree of what is stored."""
    server.run("mk", "blob:docs")
    server.run("mk", "queue:jobs")
    server.run("mk", "table:Payments")
    server.run("put", "blob:docs/reports/q3.txt", stdin="hello")
    server.run("put", "queue:jobs", stdin="send the mail")
    server.run("put", "table:Payments/2026/order-7", stdin='{"Amount":10}')
    server.run("put", "file:share/a.txt", stdin="x")
    page.get_by_role("button", name="Connect", exact=True).click()
    dialog = page.get_by_role("dialog", name="Connect")
    expect(dialog.locator("#connect-how")).to_contain_text(server.run("connection-string"))
    for folder, inside in (("docs", "reports/"), ("reports/", "q3.txt"), ("jobs", "send the mail"), ("Payments", "2026/order-7"), ("share", "a.txt")):
        dialog.locator("summary", has=page.get_by_text(folder, exact=True)).click()
        expect(dialog.locator("#connect-tree")).to_contain_text(inside)
    expect(dialog.locator("#connect-tree")).to_contain_text("5 B")
    # Nothing is taken: the message is still there.
    assert server.run("get", "queue:jobs") == "send the mail"
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def faults(page, server):
    server.run("mk", "blob:docs")
    unfold(page, "faults")
    add = form(page, "Add a fault")
    add.locator("[name=operation]").fill("Put Blob")
    assert not cut_off(add.locator("[name=action]"))
    add.locator("[name=action]").select_option("answer")
    add.locator("[name=value]").fill("503:ServerBusy")
    add.locator("[name=times]").fill("1")
    add.get_by_role("button", name="Add fault").click()
    expect(page.locator("#panel-faults .item")).to_contain_text("answer 503 ServerBusy")
    assert server.blob("PUT", "docs", "a.txt", b"x")[0] == 503
    assert server.blob("PUT", "docs", "a.txt", b"x")[0] == 201
    expect(page.locator(".event.failed", has_text="503").last).to_be_visible()
    page.get_by_role("button", name="Remove fault 1").click()
    until("the fault to be gone", lambda: not server.ask("faults")["faults"])


def states(page, server):
    server.run("mk", "blob:docs")
    unfold(page, "states")
    save = form(page, "Save the state")
    save.locator("[name=name]").fill("se eded")
    save.get_by_role("button", name="Save state").click()
    expect(save.get_by_role("alert")).to_contain_text("A name has 1 to 64")
    save.locator("[name=name]").fill("seeded")
    save.get_by_role("button", name="Save state").click()
    expect(page.locator("#panel-states .item")).to_contain_text("seeded")
    assert server.blob("PUT", "docs", "later.txt", b"x")[0] == 201
    # Cancelled, nothing changes.
    page.get_by_role("button", name="Restore state seeded").click()
    page.get_by_role("button", name="Cancel").click()
    assert server.blob("GET", "docs", "later.txt")[0] == 200
    page.get_by_role("button", name="Restore state seeded").click()
    page.locator("#confirm-yes").click()
    note(page, "State seeded was restored")
    assert server.blob("GET", "docs", "later.txt")[0] == 404
    page.get_by_role("button", name="Reset everything").click()
    page.locator("#confirm-yes").click()
    note(page, "The server is empty")
    assert server.run("ls", "--json").find("blob:docs") < 0
    page.get_by_role("button", name="Delete state seeded").click()
    page.locator("#confirm-yes").click()
    until("the state to be gone", lambda: not server.ask("states")["states"])


# --- Much ---------------------------------------------------------------------------------------


def handles(page, server):
    began = time.monotonic()
    expect(page.locator("#section-handles .count")).to_have_text("10,000")
    print(f"10,000 handles are on the page after {time.monotonic() - began:.1f} s")
    rows = page.locator("#panel-handles .item:visible")
    assert 5 < rows.count() < 60, "only the rows in view are drawn"
    host = page.locator("#panel-handles .list")
    host.evaluate("(node) => { node.scrollTop = node.scrollHeight; }")
    expect(page.locator("#panel-handles [aria-rowindex='10000']")).to_be_visible()
    # The filter works on all of them.
    page.locator("#filter-text").fill("only-one.txt")
    expect(rows).to_have_count(1)


def storm(page, server):
    """Far more events than rows: the list stays short, follows, pauses and filters."""
    server.run("mk", "blob:docs")
    base, query = server.sas("blob:docs", "rcwdl").split("?", 1)
    url = f"{base}/a.txt?{query}"
    headers = {"x-ms-blob-type": "BlockBlob"}
    work = [threading.Thread(target=lambda: [request("PUT", url, b"x", headers) for _ in range(150)]) for _ in range(4)]
    for one in work:
        one.start()
    for one in work:
        one.join()
    page.wait_for_function("() => Number(document.getElementById('events-count').textContent.replace(',', '')) >= 600")
    assert page.locator("#events-list .event").count() < 120, "only the rows in view are drawn"
    expect(page.locator("#events-latest")).to_be_hidden()
    expect(page.locator("#timeline-scale")).to_have_text("drag to see earlier")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#link")).to_have_text("Paused")
    count = page.locator("#events-count").inner_text()
    request("PUT", url, b"x", headers)
    expect(page.locator("#pause")).to_have_text("Resume (1 new)")
    assert page.locator("#events-count").inner_text() == count
    page.keyboard.press("p")
    expect(page.locator("#pause")).to_have_text("Pause")
    # A user who scrolls up stays there, and comes back with a button.
    page.locator("#events-list").hover()
    page.mouse.wheel(0, -400)
    expect(page.locator("#events-latest")).to_be_visible()
    page.locator("#events-latest").click()
    expect(page.locator("#events-latest")).to_be_hidden()
    page.locator("#filter-text").fill("queue")
    expect(page.locator("#events-empty")).to_contain_text("No event matches")
    page.get_by_role("button", name="Clear filter").click()
    expect(page.locator("#events-empty")).to_be_hidden()


# --- Other --------------------------------------------------------------------------------------


def restart(page, server):
    """The test restarts the server when this prints, and says so on standard input."""
    hold(server, "/before.txt")
    expect(page.locator(".item", has_text="share/before.txt")).to_be_visible()
    print("live", flush=True)
    assert sys.stdin.readline().strip() == "down"
    expect(page.locator("#link")).to_have_text("Reconnecting")
    print("noticed", flush=True)
    assert sys.stdin.readline().strip() == "up"
    expect(page.locator("#link")).to_have_text("Live")
    expect(page.locator(".event", has_text="the server was restarted").last).to_be_visible()
    expect(page.locator(".item", has_text="share/before.txt")).to_be_hidden()
    hold(server, "/after.txt")
    expect(page.locator(".item", has_text="share/after.txt")).to_be_visible()
    server.api("POST", "holds", {"path": "/after.txt"})
    expect(page.locator(".event.refused", has_text="after.txt").last).to_be_visible()


def injection(page, server):
    server.run("mk", "blob:docs")
    agent = f"Mozilla/5.0 {EVIL}"
    assert server.blob("PUT", "docs", f"{EVIL}.txt", b"x", user_agent=agent, x_ms_client_request_id=EVIL)[0] == 201
    row = page.locator(".event", has_text=EVIL).last
    expect(row).to_be_visible()
    row.click()
    expect(page.locator("#detail")).to_contain_text(agent)
    hold(server, "/a.txt", client=EVIL)
    expect(page.locator("#panel-handles .item")).to_contain_text(EVIL)
    assert server.api("POST", "holds", {"path": "/a.txt"}, client=EVIL)[0] == 409
    expect(page.locator(".event.below").last).to_contain_text(EVIL)
    server.do("POST", "gates", {"operation": "Get Blob", "path": f"docs/{EVIL}"})
    expect(page.locator("#panel-gates .item")).to_contain_text(EVIL)
    page.locator("#timeline-canvas").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#timeline-tip")).to_be_visible()
    assert page.evaluate("window.hacked === undefined")
    assert page.locator("img[src='x'], script:not([src])").count() == 0


def report(page, server):
    """A lost update is drawn: a lane for each client, and the requests that show it in order."""
    expect(page.locator("#section-report .count")).to_have_text("none")
    server.run("mk", "blob:docs")
    for client, method in (("A", "PUT"), ("A", "GET"), ("B", "PUT"), ("A", "PUT")):
        data = b"x" if method == "PUT" else None
        answer = server.blob(method, "docs", "a.txt", data, x_latchfs_client=client)
        assert answer[0] < 300, answer
    section = page.locator("#section-report")
    expect(section).to_contain_text("lost-update of blob:docs/a.txt")
    expect(section.locator(".finding").first.locator("li")).to_have_text([re.compile(name) for name in ("Get Blob", "Put Blob", "Put Blob")])
    lanes = section.locator(".finding").first.locator("li").evaluate_all("(all) => all.map((one) => one.style.gridRowStart)")
    assert lanes == ["1", "2", "1"], lanes


def keyboard(page, server):
    """By keys alone, and in a narrow window, in both colour schemes."""
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#filter-text")).to_be_focused()
    page.keyboard.type("r1")
    assert not page.locator("#filter-refusals").is_checked(), "letters in a field are letters"
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    expect(page.locator("#filter-text")).to_have_value("")
    page.keyboard.press("r")
    expect(page.locator("#filter-refusals")).to_be_checked()
    page.keyboard.press("3")
    expect(page.locator("#section-leases > summary")).to_be_focused()
    expect(page.locator("#section-leases")).to_contain_text("Nothing is leased.")
    page.keyboard.press("Enter")
    expect(page.locator("#section-leases")).not_to_have_attribute("open", "")
    # Every control is reached by Tab, and its focus can be seen.
    page.evaluate("document.activeElement.blur()")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("""() => { const node = document.activeElement; const { outlineStyle, outlineWidth } = getComputedStyle(node);
            return [node.id || node.textContent || node.tagName, outlineStyle !== 'none' && outlineWidth !== '0px', node.tagName]; }"""))
    names = [name for name, _, _ in seen]
    for wanted in ("clock-freeze", "help-open", "filter-text", "timeline-canvas", "pause", "connect-open"):
        assert wanted in names, (wanted, names)
    blind = [name for name, visible, tag in seen if not visible and tag != "BODY"]
    assert not blind, blind
    nameless = page.evaluate("""() => [...document.querySelectorAll('button, input, select, canvas, summary')]
        .filter((node) => !(node.textContent.trim() || node.getAttribute('aria-label') || node.getAttribute('aria-labelledby') || node.labels?.length)).map((node) => node.outerHTML)""")
    assert not nameless, nameless
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        for width in (1440, 1000, 640, 400):
            page.set_viewport_size({"width": width, "height": 800})
            over = page.evaluate("document.scrollingElement.scrollWidth - document.documentElement.clientWidth")
            assert over <= 0, (scheme, width, over)


def unknown(page, _server):
    """A list that was not fetched yet is not said to be empty."""
    page.route("**/api/v1/leases*", lambda _held: None)
    page.reload()
    expect(page.locator("#section-handles .count")).to_have_text("none")
    expect(page.locator("#section-leases .count")).to_have_text("\u2026")
    # The request that is held goes on.
    page.unroute("**/api/v1/leases*")
    expect(page.locator("#section-leases .count")).to_have_text("none")


def parts(page, _server):
    """The modules of the page, each by itself."""
    text = pathlib.Path(__file__).with_name("parts.js").read_text()
    assert page.evaluate(f"async () => {{ {text} }}") == 8


# --- Explorations -------------------------------------------------------------------------------


def explore(page, server):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "clients/python/src"))
    from latchfs import Server

    latchfs = Server.connect(server.admin, token=server.ready.get("admin_token"))

    def test():
        count = [0]

        def count_up(_, name):
            latchfs.step(name, "read", "blob:box/" + EVIL, writes=False)
            seen = count[0]
            latchfs.step(name, "write", "blob:box/" + EVIL)
            count[0] = seen + 1

        with latchfs.clients() as c:
            for name in "AB":
                c.run(name, count_up, name)
        assert count[0] == 2

    found = latchfs.explore(test)
    token = found.failure.token
    section = page.locator("#section-explorations")
    expect(section.get_by_text(f"Fails in the order {token}")).to_be_visible()
    order = section.locator(".order").first
    expect(order.locator(".order-step")).to_have_count(4)
    expect(order.locator(".order-name")).to_have_text(["A", "B"])
    expect(order).to_have_attribute("aria-label", "The order: A read, B read, B write, A write")
    lane = "(node) => getComputedStyle(node).gridRowStart"
    assert [one.evaluate(lane) for one in order.locator(".order-step").all()] == ["2", "3", "3", "2"]
    expect(section.get_by_text(f"--latchfs-schedule '{token}'")).to_be_visible()
    box = section.get_by_label("Token")
    box.fill("A2.B!.+16.^B.w1*2~0000")
    said = section.locator(".explored[role=status]")
    expect(said.locator(".order-step")).to_have_count(7)
    expect(said.get_by_text("answer lost")).to_be_visible()
    expect(said.get_by_text("+16 s")).to_be_visible()
    box.fill(token)
    expect(said.locator(".order-step", has_text="write")).to_have_count(2)
    box.fill("A.B")
    expect(said).to_contain_text("This is no token")
    assert page.evaluate("window.hacked") is None
