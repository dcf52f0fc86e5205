"""The rounds of tables."""

import datetime
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import (
    AccountSasPermissions,
    EdmType,
    EntityProperty,
    RequestTooLargeError,
    ResourceTypes,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableSasPermissions,
    TableTransactionError,
    UpdateMode,
)
from checks import refused
from faces import listed

FOREVER = datetime.datetime(2099, 1, 1, tzinfo=datetime.timezone.utc)
AWKWARD = ["it's", "% + & = ( ) , : @ $", "a b", "größe", "😀", "{x}", "''", "-", "A'aaa\"", "~"]
IF_SAME = MatchConditions.IfNotModified


async def bad_value(awaitable):
    """Asserts that the client takes the refusal for a ValueError."""
    try:
        await awaitable
    except ValueError:
        return
    raise AssertionError("no ValueError")


async def tables(it):
    service = it.service
    assert service.url.rstrip("/") == it.endpoint and service.api_version
    first = await service.create_table("FirstTable")
    error = await refused(409, "TableAlreadyExists", service.create_table("firsttable"))
    assert "The table specified already exists." in error.message
    await service.create_table_if_not_exists("firstTable")
    for name in ("ab", "a_b", "1ab", "x" * 64):
        await bad_value(service.create_table(name))
        await bad_value(service.create_table_if_not_exists(name))
        await bad_value(service.delete_table(name))
        client = service.get_table_client(name)
        await bad_value(client.create_table())
        await bad_value(client.delete_table())
        await bad_value(client.create_entity({"PartitionKey": "p", "RowKey": "r"}))
    for number in range(5):
        await service.create_table(f"paged{number}")
    pages = await service.query_tables(
        "TableName ge @low and TableName lt @high",
        parameters={"low": "paged", "high": "paged9"},
        results_per_page=2,
    ).pages()
    assert [len(items) for items, _ in pages] == [2, 2, 1], pages
    assert [token is None for _, token in pages] == [False, False, True]
    again = await service.list_tables(results_per_page=2).pages()
    assert sum(len(items) for items, _ in again) == 6
    names = [item.name for item in await listed(service.list_tables())]
    assert names == ["FirstTable"] + [f"paged{number}" for number in range(5)]
    await refused(400, "InvalidInput", listed(service.query_tables("TableName eq")))
    made = service.get_table_client("made")
    assert (await made.create_table()).name == "made"
    await refused(409, "TableAlreadyExists", made.create_table())
    await made.delete_table()
    await made.delete_table()
    await service.delete_table("FIRSTTABLE")
    await service.delete_table("firsttable")
    assert first.table_name == "FirstTable"
    for number in range(5):
        await service.delete_table(f"paged{number}")


async def entities(it):
    table = await it.table("entities")
    given = {
        "PartitionKey": "p",
        "RowKey": "r",
        "text": "täxt\n\"quoted\"",
        "empty": "",
        "flag": True,
        "small": 5,
        "large": EntityProperty(2**53 + 1, EdmType.INT64),
        "least": EntityProperty(-(2**63), EdmType.INT64),
        "whole": 3.0,
        "huge": 1.23456789012346e24,
        "nan": float("nan"),
        "least_double": float("-inf"),
        "when": datetime.datetime(2021, 4, 8, 14, 34, 34, 790568, tzinfo=datetime.timezone.utc),
        "guid": uuid.UUID("C0FFEE00-1234-5678-9ABC-DEF012345678"),
        "raw": b"\x00\xff",
        "none": None,
    }
    made = await table.create_entity(given)
    assert made["etag"].startswith("W/\"datetime'")
    got = await table.get_entity("p", "r")
    assert got.metadata["etag"] == made["etag"] and got.metadata["timestamp"]
    for name, value in given.items():
        if name == "none":
            assert name not in got
        elif name == "nan":
            assert got[name] != got[name]
        else:
            assert got[name] == value, (name, got[name], value)
    assert isinstance(got["whole"], float) and isinstance(got["small"], int)
    chosen = await table.get_entity("p", "r", select=["text", "PartitionKey"])
    assert set(chosen) == {"text", "PartitionKey"}, chosen
    await refused(409, "EntityAlreadyExists", table.create_entity(given))
    await refused(404, "ResourceNotFound", table.get_entity("p", "none"))
    assert (await table.create_entity({"PartitionKey": "", "RowKey": ""}))["etag"]
    assert (await table.get_entity("", ""))["RowKey"] == ""
    await awkward_keys(table)
    await limits(table)
    nowhere = it.service.get_table_client("nowhere")
    row = {"PartitionKey": "p", "RowKey": "r"}
    await refused(404, "TableNotFound", nowhere.create_entity(row))
    await refused(404, "TableNotFound", nowhere.upsert_entity(row))
    await refused(404, "TableNotFound", nowhere.get_entity("p", "r"))
    await refused(404, "TableNotFound", listed(nowhere.list_entities()))
    await nowhere.delete_entity("p", "r")


async def awkward_keys(table):
    for key in AWKWARD:
        made = await table.create_entity({"PartitionKey": key, "RowKey": key, "n": 1})
        got = await table.get_entity(key, key)
        assert (got["PartitionKey"], got["RowKey"]) == (key, key)
        await table.update_entity(
            {"PartitionKey": key, "RowKey": key, "n": 2},
            etag=made["etag"],
            match_condition=IF_SAME,
        )
        text = "PartitionKey eq @key and RowKey eq @key"
        found = await listed(table.query_entities(text, parameters={"key": key}))
        assert [row["n"] for row in found] == [2], key
        await table.delete_entity(key, key)
        await refused(404, "ResourceNotFound", table.get_entity(key, key))


async def limits(table):
    def row(**more):
        return {"PartitionKey": "limits", "RowKey": str(uuid.uuid4()), **more}

    await table.create_entity(row(**{f"p{n}": n for n in range(252)}))
    many = table.create_entity(row(**{f"p{n}": n for n in range(253)}))
    await refused(400, "TooManyProperties", many)
    await table.create_entity(row(x="x" * 32768))
    await refused(400, "PropertyValueTooLarge", table.create_entity(row(x="x" * 32769)))
    big = {f"p{n}": "x" * 32000 for n in range(17)}
    await refused(400, "EntityTooLarge", table.create_entity(row(**big)))
    await refused(400, "PropertyNameInvalid", table.create_entity(row(**{"a-b": 1})))
    await refused(400, "PropertyNameTooLong", table.create_entity(row(**{"x" * 256: 1})))
    await refused(400, "OutOfRangeInput", table.create_entity(row(RowKey="a/b")))
    await refused(400, "KeyValueTooLarge", table.create_entity(row(RowKey="x" * 513)))
    assert len(await listed(table.query_entities("PartitionKey eq 'limits'"))) == 2


async def conditions(it):
    table = await it.table("conditions")
    row = {"PartitionKey": "p", "RowKey": "r", "n": 1, "kept": True}
    first = await table.create_entity(row)
    ours = {"etag": first["etag"], "match_condition": IF_SAME}
    second = await table.update_entity({**row, "n": 2}, mode=UpdateMode.REPLACE, **ours)
    assert second["etag"] != first["etag"]
    for mode in UpdateMode:
        error = await refused(
            412,
            "UpdateConditionNotSatisfied",
            table.update_entity({**row, "n": 3}, mode=mode, **ours),
            ResourceModifiedError,
        )
        assert "changed" in error.message and "Update Entity" in error.message, error.message
    await refused(412, "UpdateConditionNotSatisfied", table.delete_entity("p", "r", **ours))
    merged = {"PartitionKey": "p", "RowKey": "r", "n": 4}
    await table.update_entity(merged)
    got = await table.get_entity("p", "r")
    assert (got["n"], got["kept"]) == (4, True)
    await table.upsert_entity(merged, mode=UpdateMode.REPLACE)
    got = await table.get_entity("p", "r")
    assert "kept" not in got
    await table.upsert_entity({"PartitionKey": "p", "RowKey": "new", "n": 1})
    missing = {"PartitionKey": "p", "RowKey": "missing", "n": 1}
    await refused(404, "ResourceNotFound", table.update_entity(missing))
    await table.delete_entity(got, match_condition=IF_SAME, etag=got.metadata["etag"])
    await table.delete_entity("p", "missing")
    await refused(404, "ResourceNotFound", table.get_entity("p", "r"))


async def queries(it):
    table = await it.table("queries")
    for group in range(10):
        await table.submit_transaction(
            [
                ("create", {"PartitionKey": "p", "RowKey": f"{group:02}{n:02}", "n": n, "g": group})
                for n in range(100)
            ]
        )
    await table.create_entity({"PartitionKey": "q", "RowKey": "last", "n": -1})
    pages = await table.list_entities().pages()
    assert [len(items) for items, _ in pages] == [1000, 1]
    pages = await table.query_entities("g eq 3", results_per_page=30).pages()
    assert [len(items) for items, _ in pages] == [30, 30, 30, 10]
    token = pages[1][1]
    rest = await table.query_entities("g eq 3", results_per_page=30).pages(token)
    assert [len(items) for items, _ in rest] == [30, 10]
    for text, count in (
        ("PartitionKey eq 'q'", 1),
        ("PartitionKey eq 'p' and RowKey ge '0950'", 50),
        ("n lt 2 and not (g eq 0)", 19),
        ("n eq 99L or n eq -1", 11),
        ("Timestamp gt datetime'2020-01-01T00:00:00Z' and n eq 5", 10),
    ):
        assert len(await listed(table.query_entities(text))) == count, text
    chosen = await listed(table.query_entities("n eq -1", select=["n"]))
    assert [dict(row) for row in chosen] == [{"n": -1}]
    assert chosen[0].metadata["etag"]
    await refused(400, "InvalidInput", listed(table.query_entities("aaa bbb ccc")))


async def transactions(it):
    table = await it.table("transactions")

    def row(key, **more):
        return {"PartitionKey": "p", "RowKey": key, **more}

    for key in ("b", "c", "d"):
        await table.create_entity(row(key, n=0, kept=1))
    answers = await table.submit_transaction(
        [
            ("create", row("a", n=1)),
            ("update", row("b", n=1), {"mode": UpdateMode.REPLACE}),
            ("update", row("c", n=1), {"mode": "merge"}),
            ("delete", row("d")),
            ("upsert", row("it's", n=1)),
            ("upsert", row("f", n=1), {"mode": UpdateMode.REPLACE}),
        ]
    )
    # A deletion returns no ETag.
    assert ["etag" in one for one in answers] == [True, True, True, False, True, True], answers
    assert {one["RowKey"] for one in await listed(table.list_entities())} == {
        "a", "b", "c", "it's", "f",
    }
    assert (await table.get_entity("p", "c"))["kept"] == 1
    assert "kept" not in await table.get_entity("p", "b")

    async def fails(status, code, index, operations):
        call = table.submit_transaction(operations)
        error = await refused(status, code, call, TableTransactionError)
        assert error.index == index, (code, error.index)
        return error

    error = await fails(
        409, "EntityAlreadyExists", 3, [("create", row(key)) for key in ("x", "y", "z", "a")]
    )
    assert "3:The specified entity already exists." in error.message
    stale = {"etag": "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"", "match_condition": IF_SAME}
    await fails(412, "UpdateConditionNotSatisfied", 1, [
        ("create", row("x")), ("update", row("a", n=2), stale)
    ])
    await fails(404, "ResourceNotFound", 1, [("create", row("x")), ("update", row("none"))])
    await fails(400, "InvalidInput", 99, [("create", row(str(n))) for n in range(101)])
    await fails(400, "InvalidDuplicateRow", 1, [("create", row("x")), ("upsert", row("x"))])
    big = [("create", row(str(n), **{f"p{m}": "x" * 30000 for m in range(10)})) for n in range(20)]
    await refused(413, "RequestBodyTooLarge", table.submit_transaction(big), RequestTooLargeError)
    nowhere = it.service.get_table_client("nowhere")
    lost = nowhere.submit_transaction([("create", row("x"))])
    error = await refused(404, "TableNotFound", lost, TableTransactionError)
    assert error.index == 0
    await bad_partitions(table, row)
    assert len(await listed(table.list_entities())) == 5
    assert await table.submit_transaction([]) == []


async def bad_partitions(table, row):
    """The client itself refuses two partitions."""
    other = {"PartitionKey": "q", "RowKey": "x"}
    try:
        await table.submit_transaction([("create", row("x")), ("create", other)])
    except ValueError:
        return
    raise AssertionError("two partitions in one transaction")


async def policies(it):
    table = await it.table("policies")
    assert await table.get_table_access_policy() == {}
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    full = TableAccessPolicy(permission="r", start=start, expiry=FOREVER)
    await table.set_table_access_policy({"read": full, "empty": None})
    got = await table.get_table_access_policy()
    assert got["read"].permission == "r" and got["empty"] is None, got
    await bad_value(table.set_table_access_policy({str(n): None for n in range(6)}))
    sas = it.face.generate_table_sas(it.credential, "policies", policy_id="read")
    reader = it.with_sas(sas).get_table_client("policies")
    assert await listed(reader.list_entities()) == []
    row = {"PartitionKey": "p", "RowKey": "r"}
    await refused(403, "AuthorizationPermissionMismatch", reader.create_entity(row))
    await table.set_table_access_policy({})
    assert await table.get_table_access_policy() == {}
    await refused(403, "AuthenticationFailed", reader.get_entity("p", "r"))
    nowhere = it.service.get_table_client("nowhere")
    await refused(404, "TableNotFound", nowhere.get_table_access_policy())
    await refused(404, "TableNotFound", nowhere.set_table_access_policy({}))


async def signatures(it):
    table = await it.table("signed")
    row = {"PartitionKey": "p", "RowKey": "r"}
    await table.create_entity(row)

    def by(letters, **more):
        sas = it.face.generate_table_sas(
            it.credential, "signed", permission=TableSasPermissions(**letters), expiry=FOREVER,
            **more,
        )
        return it.with_sas(sas).get_table_client("signed")

    reader, adder = by({"read": True}), by({"add": True})
    updater, deleter = by({"update": True}), by({"delete": True})
    both = by({"add": True, "update": True})
    wrong = "AuthorizationPermissionMismatch"
    assert (await reader.get_entity("p", "r"))["RowKey"] == "r"
    await refused(403, wrong, listed(adder.list_entities()))
    await adder.create_entity({**row, "RowKey": "added"})
    await refused(403, wrong, adder.upsert_entity({**row, "RowKey": "added"}))
    await refused(403, wrong, updater.upsert_entity({**row, "RowKey": "added"}))
    await both.upsert_entity({**row, "RowKey": "both"})
    await updater.update_entity({**row, "n": 1})
    await refused(403, wrong, reader.update_entity({**row, "n": 1}))
    await refused(403, wrong, updater.delete_entity("p", "added"))
    await deleter.delete_entity("p", "added")
    # Keys from (p, b) to (q, c).
    for partition, key in (("p", "a"), ("p", "b"), ("p", "z"), ("q", "c"), ("q", "d"), ("r", "b")):
        await table.upsert_entity({"PartitionKey": partition, "RowKey": key})
    ranged = by(
        {"read": True, "add": True},
        start_pk="p", start_rk="b", end_pk="q", end_rk="c",
    )
    seen = [(one["PartitionKey"], one["RowKey"]) for one in await listed(ranged.list_entities())]
    assert seen == [("p", "b"), ("p", "both"), ("p", "r"), ("p", "z"), ("q", "c")], seen
    assert (await ranged.get_entity("p", "b"))["RowKey"] == "b"
    await refused(403, "AuthorizationFailure", ranged.get_entity("p", "a"))
    await refused(
        403, "AuthorizationFailure", ranged.create_entity({"PartitionKey": "q", "RowKey": "x"})
    )


async def account_signatures(it):
    def by(types, **letters):
        sas = it.face.generate_account_sas(
            it.credential,
            resource_types=ResourceTypes(**types),
            permission=AccountSasPermissions(**letters),
            expiry=FOREVER,
        )
        return it.with_sas(sas)

    everything = {"service": True, "object": True}
    reader = by(everything, read=True, list=True)
    assert (await reader.get_service_properties())["cors"] is not None
    await refused(403, "AuthorizationResourceTypeMismatch", reader.create_table("nope"))
    writer = by(everything, write=True)
    await refused(403, "AuthorizationPermissionMismatch", writer.get_service_properties())
    await refused(403, "AuthorizationResourceTypeMismatch", writer.create_table("nope"))
    sas = it.face.generate_account_sas(
        it.credential, resource_types=ResourceTypes(service=True, object=True),
        permission=AccountSasPermissions(read=True, list=True), expiry=FOREVER,
    )
    other = it.with_sas(sas.replace("ss=t", "ss=q"))
    await refused(403, "AuthenticationFailed", listed(other.list_tables()))


async def service(it):
    service = it.service
    retention = TableRetentionPolicy(enabled=True, days=5)
    logging = TableAnalyticsLogging(read=True, write=True, delete=True, retention_policy=retention)
    metrics = TableMetrics(enabled=True, include_apis=True, retention_policy=retention)
    rules = [TableCorsRule(["http://here.example"], ["GET"], max_age_in_seconds=60)]
    await service.set_service_properties(
        analytics_logging=logging, hour_metrics=metrics, minute_metrics=metrics, cors=rules
    )
    got = await service.get_service_properties()
    assert got["analytics_logging"].read and got["hour_metrics"].include_apis
    assert got["cors"][0].allowed_origins == ["http://here.example"]
    await service.set_service_properties(cors=rules * 5)
    await refused(400, "InvalidXmlDocument", service.set_service_properties(cors=rules * 6))
    retention = TableRetentionPolicy(enabled=True, days=366)
    late = TableMetrics(enabled=True, include_apis=True, retention_policy=retention)
    await refused(400, "InvalidXmlDocument", service.set_service_properties(hour_metrics=late))
    await service.set_service_properties(cors=[])
    assert (await service.get_service_properties())["cors"] == []
    stats = await service.get_service_stats()
    assert stats["geo_replication"]["status"] == "live", stats


async def building(it):
    by_text = it.face.TableServiceClient.from_connection_string(it.connection)
    assert by_text.url.rstrip("/") == it.endpoint
    await listed(by_text.list_tables())
    await by_text.close()
    table = it.face.TableClient.from_connection_string(it.connection, "built")
    await table.create_table()
    await table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    by_url = it.face.TableClient.from_table_url(f"{it.endpoint}/built", credential=it.credential)
    assert len(await listed(by_url.list_entities())) == 1 and by_url.url and by_url.api_version
    await table.close()
    await by_url.close()
    await refused(403, "AuthenticationFailed", listed(it.stranger.list_tables()))
    await refused(403, "AuthenticationFailed", it.stranger.create_table("nope"))
    await refused(403, "AuthenticationFailed", it.stranger.get_service_stats())
