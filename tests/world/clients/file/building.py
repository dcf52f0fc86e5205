"""How clients are made, from one another and from what people have at hand, and what they say of
themselves."""

from shared import by_url, made


async def play(it):
    share = await it.service.create_share("built")
    directory = await share.create_directory("in here")
    await directory.upload_file("x y.txt", b"built")
    await made(it, "ShareServiceClient", (), "", lists)
    await made(it, "ShareClient", ("built",), "built", is_share)
    await made(it, "ShareDirectoryClient", ("built", "in here"), "built/in%20here", is_directory)
    await made(
        it, "ShareFileClient", ("built", "in here/x y.txt"), "built/in%20here/x%20y.txt", is_file
    )
    await by_url(it, it.face.ShareClient.from_share_url, "built", is_share)
    forgetful(it)
    await from_one_another(it)


async def lists(service):
    assert "built" in [share.name async for share in service.list_shares()]


async def is_share(share):
    assert (await share.get_share_properties()).name == "built"


async def is_directory(directory):
    assert (await directory.get_directory_properties()).is_directory


async def is_file(file):
    assert (await file.get_file_properties()).size == 5


def forgetful(it):
    """These two forget the scheme and take https, which the server of this round does not speak."""
    named = {"account_name": it.account, "account_key": it.key}
    url = f"{it.endpoint}/built"
    secure = url.replace("http://", "https://")
    when = "2026-01-02T03:04:05.0000000Z"
    build = it.face.ShareDirectoryClient.from_directory_url
    directory = build(f"{url}/in", snapshot=when, credential=named)
    assert directory.url.startswith(f"{secure}%2Fin?sharesnapshot=2026-01-02")
    assert directory.snapshot == when
    assert directory.secondary_hostname in directory.secondary_endpoint
    file = it.face.ShareFileClient.from_file_url(f"{url}/in/x%20y.txt", credential=named)
    assert file.url == f"{secure}/in/x%20y.txt" and file.file_name == "x y.txt"
    assert file.secondary_hostname in file.secondary_endpoint


async def from_one_another(it):
    share = it.service.get_share_client("built")
    directory = share.get_directory_client("in here")
    file = directory.get_file_client("x y.txt")
    assert await file.exists() and await share.get_file_client("in here/x y.txt").exists()
    below = directory.get_subdirectory_client("deep")
    assert below.directory_path == "in here/deep" and not await below.exists()
    (same,) = [item async for item in it.service.list_shares("built")]
    assert it.service.get_share_client(same).share_name == "built"
