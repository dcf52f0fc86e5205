"""Two concurrent appends to a Delta table, by delta-rs with threads of its own.

Called with the most runs: with enough of them, all orders are tried.
"""

import sys

import pyarrow
from azure.storage.blob import ContainerClient
from deltalake import DeltaTable, write_deltalake
from latchfs import Server

ENOUGH = 1000
"""With a budget of so many runs the search must be complete."""


def options(connection):
    facts = dict(part.split("=", 1) for part in connection.strip(";").split(";"))
    return {
        "account_name": facts["AccountName"],
        "account_key": facts["AccountKey"],
        "endpoint": facts["BlobEndpoint"],
        "allow_http": "true",
    }


def append(connection, writer):
    rows = pyarrow.table({"writer": [writer]})
    write_deltalake("az://delta/table", rows, mode="append", storage_options=options(connection))


def main():
    budget = int(sys.argv[1])
    with Server() as server:
        ContainerClient.from_connection_string(server.connection_string, "delta").create_container()
        append(server.connection_string, "first")

        def test():
            with server.clients() as c:
                for name in "AB":
                    c.run(name, append, name)
            table = DeltaTable("az://delta/table", storage_options=options(server.connection_string))
            assert sorted(table.to_pyarrow_table()["writer"].to_pylist()) == ["A", "B", "first"]
            assert table.version() == 2

        found = server.explore(test, budget=budget)
        print(found, flush=True)
        assert found.failure is None
        assert found.complete or budget < ENOUGH
    print("played", flush=True)


main()
