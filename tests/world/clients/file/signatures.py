"""Who is let in: keys, account and service signatures, stored policies, and who is not."""

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.fileshare import (
    AccessPolicy,
    AccountSasPermissions,
    FileSasPermissions,
    Services,
    ShareSasPermissions,
)
from checks import HOUR, now, refused
from faces import listed
from shared import bad_account_signatures, by_account


async def play(it):
    share = await it.service.create_share("signed")
    await share.create_directory("dir")
    await share.get_file_client("dir/a b.txt").upload_file(b"signed")
    await keys(it)
    await of_the_account(it)
    await of_a_share(it, share)
    await of_a_file(it)
    await by_policy(it, share)


async def keys(it):
    wrong = "A" * 86 + "=="
    good = AzureNamedKeyCredential(it.account, it.key)
    async with it.opened("ShareClient", "signed", credential=good) as share:
        assert (await share.get_share_properties()).name == "signed"
    async with it.opened("ShareFileClient", "signed", "dir/a b.txt", credential=wrong) as file:
        error = await refused(403, "AuthenticationFailed", file.download_file())
        # What the server signed, for those who look for their mistake.
        assert "x-ms-version:" in error.message, error.message
        await refused(403, "AuthenticationFailed", file.get_file_properties())


async def of_the_account(it):
    async with by_account(it, start=now() - HOUR, ip="127.0.0.1", protocol="https,http") as service:
        assert "signed" in [share.name for share in await listed(service.list_shares())]
        file = service.get_share_client("signed").get_file_client("dir/a b.txt")
        assert await (await file.download_file()).readall() == b"signed"
        await refused(403, "AuthorizationPermissionMismatch", service.create_share("not-mine"))
        await refused(403, "AuthorizationPermissionMismatch", file.delete_file())
        await refused(403, "AuthorizationPermissionMismatch", file.upload_range(b"x", 0, 1))
    await bad_account_signatures(it, Services(blob=True), lambda one: one.list_shares())
    grown = AccountSasPermissions(read=True, write=True, create=True, delete=True, list=True)
    async with by_account(it, permission=grown) as service:
        mine = await service.create_share("mine")
        await mine.get_file_client("f").upload_file(b"mine")
        await service.delete_share("mine")


async def of_a_share(it, share):
    def sas(permission, **more):
        more = {"expiry": now() + HOUR, **more}
        return it.face.generate_share_sas(it.account, "signed", it.key, permission, **more)

    reads = sas(ShareSasPermissions(read=True, list=True))
    async with it.opened("ShareClient", "signed", credential=AzureSasCredential(reads)) as reader:
        (item,) = await listed(reader.list_directories_and_files("dir"))
        file = reader.get_directory_client("dir").get_file_client(item.name)
        assert await (await file.download_file()).readall() == b"signed"
        await refused(403, "AuthorizationPermissionMismatch", file.upload_range(b"x", 0, 1))
        await refused(403, "AuthorizationPermissionMismatch", file.create_file(1))
        await refused(403, "AuthorizationPermissionMismatch", reader.create_directory("more"))
    async with it.opened("ShareClient", "signed", credential=sas("cw")) as writer:
        file = writer.get_file_client("written")
        await file.upload_file(b"blind")
        await refused(403, "AuthorizationPermissionMismatch", file.download_file())
        await refused(403, "AuthorizationPermissionMismatch", file.delete_file())
        listing = listed(writer.list_directories_and_files())
        await refused(403, "AuthorizationPermissionMismatch", listing)
    async with it.opened("ShareClient", "share", credential=reads) as elsewhere:
        await refused(403, "AuthenticationFailed", listed(elsewhere.list_directories_and_files()))
    # The URL of a client with a signature is enough for whoever is handed it.
    source = it.face.ShareFileClient(it.endpoint, "signed", "written", credential=sas("r"))
    target = share.get_file_client("taken")
    await target.start_copy_from_url(source.url)
    assert (await target.get_file_properties()).size == 5


async def of_a_file(it):
    shown = {
        "content_type": "text/x-shown",
        "content_disposition": "inline",
        "content_language": "fr",
    }
    sas = it.face.generate_file_sas(
        it.account,
        "signed",
        ["dir", "a b.txt"],
        it.key,
        FileSasPermissions(read=True),
        now() + HOUR,
        **shown,
    )
    async with it.opened("ShareFileClient", "signed", "dir/a b.txt", credential=sas) as file:
        stream = await file.download_file()
        assert await stream.readall() == b"signed"
        settings = stream.properties.content_settings
        assert {name: settings[name] for name in shown} == shown
        await refused(403, "AuthorizationPermissionMismatch", file.delete_file())
        await refused(403, "AuthorizationPermissionMismatch", file.resize_file(1))
    async with it.opened("ShareFileClient", "signed", "written", credential=sas) as other:
        await refused(403, "AuthenticationFailed", other.download_file())


async def by_policy(it, share):
    policy = AccessPolicy(ShareSasPermissions(read=True), now() + HOUR, now() - HOUR)
    await share.set_share_access_policy({"readers": policy})
    sas = it.face.generate_share_sas(it.account, "signed", it.key, policy_id="readers")
    async with it.opened("ShareFileClient", "signed", "dir/a b.txt", credential=sas) as file:
        assert await (await file.download_file()).readall() == b"signed"
        await refused(403, "AuthorizationPermissionMismatch", file.delete_file())
        await share.set_share_access_policy({})
        await refused(403, "AuthenticationFailed", file.download_file())
