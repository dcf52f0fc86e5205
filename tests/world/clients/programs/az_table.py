"""az against the Table service of a running latchfs: tables, and entities with their ETags."""
from az_common import az

NAMED = ["--table-name", "people"]
KEY = ["--partition-key", "p", "--row-key", "r"]


def tables():
    assert az("table", "create", "--name", "people")["created"]
    az("table", "create", "--name", "people", "--fail-on-exist", status=1)
    assert az("table", "exists", "--name", "people") == {"exists": True}
    assert [one["name"] for one in az("table", "list")] == ["people"]
    az("table", "policy", "create", *NAMED, "--name", "readers", "--permissions", "r",
       "--expiry", "2099-01-01T00:00:00Z")
    assert list(az("table", "policy", "list", *NAMED)) == ["readers"]
    assert az("table", "generate-sas", "--name", "people", "--policy-name", "readers")


def entities():
    az("entity", "insert", *NAMED, "--entity", "PartitionKey=p", "RowKey=r", "Name=Ann", "Age=30")
    az("entity", "insert", *NAMED, "--entity", "PartitionKey=p", "RowKey=r", "Name=Bob",
       status=1)
    shown = az("entity", "show", *NAMED, *KEY)
    assert shown["Name"] == "Ann" and shown["Age"] == 30, shown
    tag = shown["etag"]
    keys = ["PartitionKey=p", "RowKey=r"]
    az("entity", "merge", *NAMED, "--entity", *keys, "City=Ulm", "--if-match", tag)
    # Somebody changed it since: the condition of before does not hold.
    az("entity", "merge", *NAMED, "--entity", *keys, "City=Bonn", "--if-match", tag, status=1)
    shown = az("entity", "show", *NAMED, *KEY)
    assert (shown["City"], shown["Name"]) == ("Ulm", "Ann"), shown
    az("entity", "replace", *NAMED, "--entity", *keys, "Name=Eve")
    assert "City" not in az("entity", "show", *NAMED, *KEY)
    az("entity", "insert", *NAMED, "--entity", "PartitionKey=p", "RowKey=s", "Name=Zoe")
    found = az("entity", "query", *NAMED, "--filter", "Name gt 'F'")["items"]
    assert [one["RowKey"] for one in found] == ["s"], found
    az("entity", "delete", *NAMED, *KEY)
    az("entity", "show", *NAMED, *KEY, status=3)
    assert az("table", "delete", "--name", "people")["deleted"]


tables()
entities()
print("met")
