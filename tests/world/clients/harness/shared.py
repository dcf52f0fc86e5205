"""Rounds that the storage SDKs share: how clients are made, the properties of the service, its
secondary, and signatures of the account."""

from checks import HOUR, now, recent, refused
from faces import listed


def says(it, client, path):
    """Asserts on the addresses of a client."""
    url = f"{it.endpoint}/{path}"
    assert (client.url, client.primary_endpoint) == (url, url), client.url
    assert client.primary_hostname == it.endpoint.removeprefix("http://")
    assert not client.secondary_hostname
    assert client.location_mode == "primary"
    assert client.api_version == "2026-10-06", client.api_version


async def made(it, name, args, path, works):
    """Makes a client of the class `name` by connection string and by its constructor."""
    maker = getattr(it.face, name)
    client = maker.from_connection_string(it.connection, *args)
    says(it, client, path)
    await works(client)
    await client.close()
    spare = {"credential": it.key, "secondary_hostname": "spare.example"}
    client = maker(it.endpoint, *args, **spare)
    assert client.secondary_endpoint == f"http://spare.example/{path}"
    assert client.secondary_hostname == "spare.example"
    await works(client)
    await client.close()


async def by_url(it, build, path, works):
    """Makes a client from a URL, by `build`."""
    named = {"account_name": it.account, "account_key": it.key}
    client = build(f"{it.endpoint}/{path}", credential=named)
    says(it, client, path)
    await works(client)
    await client.close()


async def properties(it, **more):
    """Sets the properties of the service, and `more` that this service has beside. Gives them as
    they were, and as they were set."""
    service, sdk = it.service, it.face.library.sync
    first = await service.get_service_properties()
    assert not first["hour_metrics"].enabled and not first["minute_metrics"].enabled
    assert first["cors"] == []

    kept = sdk.RetentionPolicy(enabled=True, days=5)
    metrics = sdk.Metrics(enabled=True, include_apis=True, retention_policy=kept)
    rule = sdk.CorsRule(
        ["http://a.example", "http://b.example"],
        ["GET", "PUT"],
        allowed_headers=["x-ms-*"],
        exposed_headers=["x-ms-meta-*", "etag"],
        max_age_in_seconds=60,
    )
    await service.set_service_properties(hour_metrics=metrics, cors=[rule], **more)
    second = await service.get_service_properties()
    hour = second["hour_metrics"]
    assert (hour.enabled, hour.include_apis) == (True, True)
    assert (hour.retention_policy.enabled, hour.retention_policy.days) == (True, 5)
    assert second["minute_metrics"].enabled == ("minute_metrics" in more)
    (seen,) = second["cors"]
    assert vars(seen) == vars(rule)

    # A part that is not sent stays as it is; an empty list is a part.
    await service.set_service_properties(cors=[])
    third = await service.get_service_properties()
    assert third["cors"] == [] and third["hour_metrics"].enabled
    await refused(400, "InvalidXmlDocument", service.set_service_properties(cors=[rule] * 6))
    await refused(403, "AuthenticationFailed", it.stranger.get_service_properties())
    return first, second


async def stats(it):
    async with it.mirrored(it.key) as service:
        said = await service.get_service_stats()
        assert said["geo_replication"]["status"] == "live"
        recent(said["geo_replication"]["last_sync_time"])
    async with it.mirrored("A" * 86 + "==") as stranger:
        await refused(403, "AuthenticationFailed", stranger.get_service_stats())


def by_account(it, types=None, permission=None, **more):
    """A client of the service with a signature of the account: of all types, to read and list."""
    sdk = it.face.library.sync
    types = types or sdk.ResourceTypes(service=True, container=True, object=True)
    permission = permission or sdk.AccountSasPermissions(read=True, list=True)
    more = {"expiry": now() + HOUR, **more}
    return it.by(it.face.generate_account_sas(it.account, it.key, types, permission, **more))


async def bad_account_signatures(it, elsewhere, listing):
    """What `listing` of a client meets with signatures that do not fit, or fit `elsewhere`."""
    sdk = it.face.library.sync
    for code, more in (
        ("AuthorizationResourceTypeMismatch", {"types": sdk.ResourceTypes(object=True)}),
        ("AuthorizationServiceMismatch", {"services": elsewhere}),
        ("AuthorizationSourceIPMismatch", {"ip": "192.0.2.1"}),
        ("AuthorizationProtocolMismatch", {"protocol": "https"}),
        ("AuthorizationPermissionMismatch", {"permission": sdk.AccountSasPermissions(read=True)}),
        ("AuthenticationFailed", {"expiry": now() - HOUR}),
        ("AuthenticationFailed", {"start": now() + HOUR}),
    ):
        async with by_account(it, **more) as service:
            await refused(403, code, listed(listing(service)))
