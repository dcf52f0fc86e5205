"""az against the Queue service of a running latchfs: queues, and messages with their receipts."""
from az_common import az


def queues():
    assert az("queue", "create", "--name", "work", "--metadata", "a=b")["created"]
    assert az("queue", "exists", "--name", "work") == {"exists": True}
    assert [one["name"] for one in az("queue", "list")] == ["work"]
    az("queue", "metadata", "update", "--name", "work", "--metadata", "c=d")
    assert az("queue", "metadata", "show", "--name", "work") == {"c": "d"}
    az("queue", "policy", "create", "--queue-name", "work", "--name", "readers",
       "--permissions", "r", "--expiry", "2099-01-01T00:00:00Z")
    assert list(az("queue", "policy", "list", "--queue-name", "work")) == ["readers"]
    assert az("queue", "generate-sas", "--name", "work", "--policy-name", "readers")


def messages():
    named = ["--queue-name", "work"]
    for text in ["one", "two & <three>"]:
        az("message", "put", *named, "--content", text)
    peeked = az("message", "peek", *named, "--num-messages", "5")
    assert [one["content"] for one in peeked] == ["one", "two & <three>"], peeked
    [first] = az("message", "get", *named, "--visibility-timeout", "600")
    assert first["content"] == "one" and first["dequeueCount"] == 1, first
    held = ["--id", first["id"], "--pop-receipt", first["popReceipt"]]
    updated = az("message", "update", *named, *held, "--content", "changed",
                 "--visibility-timeout", "600")
    # The receipt of before the update is worth nothing any more.
    az("message", "delete", *named, *held, status=1)
    az("message", "delete", *named, "--id", first["id"], "--pop-receipt", updated["popReceipt"])
    [second] = az("message", "get", *named)
    assert second["content"] == "two & <three>", second
    az("message", "clear", *named)
    assert az("message", "peek", *named) == []
    assert az("queue", "delete", "--name", "work")["deleted"]
    az("message", "put", *named, "--content", "late", status=3)


queues()
messages()
print("met")
