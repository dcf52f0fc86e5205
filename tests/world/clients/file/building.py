"""How clients are made, from one another and from what people have at hand, and what they say of
themselves."""


async def play(it):
    share = await it.service.create_share("built")
    directory = await share.create_directory("in here")
    await directory.upload_file("x y.txt", b"built")
    await by_connection_string(it)
    await by_url(it)
    await by_constructor(it)
    await from_one_another(it)


def says(it, client, path):
    """Asserts on the addresses of a client."""
    url = f"{it.endpoint}/{path}"
    assert (client.url, client.primary_endpoint) == (url, url)
    assert client.primary_hostname == it.endpoint.removeprefix("http://")
    assert not client.secondary_hostname
    assert client.location_mode == "primary"
    assert client.api_version == "2026-10-06"


async def by_connection_string(it):
    face, text = it.face, it.connection
    service = face.ShareServiceClient.from_connection_string(text)
    says(it, service, "")
    share = face.ShareClient.from_connection_string(text, "built")
    says(it, share, "built")
    assert (await share.get_share_properties()).name == "built"
    directory = face.ShareDirectoryClient.from_connection_string(text, "built", "in here")
    says(it, directory, "built/in%20here")
    assert (await directory.get_directory_properties()).is_directory
    file = face.ShareFileClient.from_connection_string(text, "built", "in here/x y.txt")
    says(it, file, "built/in%20here/x%20y.txt")
    assert (await file.get_file_properties()).size == 5
    for client in (service, share, directory, file):
        await client.close()


async def by_url(it):
    named = {"account_name": it.account, "account_key": it.key}
    url = f"{it.endpoint}/built"
    share = it.face.ShareClient.from_share_url(url, credential=named)
    says(it, share, "built")
    assert (await share.get_share_properties()).name == "built"
    await share.close()
    # These two forget the scheme and take https, which the server of this round does not speak.
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


async def by_constructor(it):
    spare = {"credential": it.key, "secondary_hostname": "spare.example"}
    service = it.face.ShareServiceClient(it.endpoint, **spare)
    assert service.secondary_endpoint == "http://spare.example/"
    share = it.face.ShareClient(it.endpoint, "built", **spare)
    assert share.secondary_endpoint == "http://spare.example/built"
    assert (await share.get_share_properties()).name == "built"
    await service.close()
    await share.close()


async def from_one_another(it):
    share = it.service.get_share_client("built")
    directory = share.get_directory_client("in here")
    file = directory.get_file_client("x y.txt")
    assert await file.exists() and await share.get_file_client("in here/x y.txt").exists()
    below = directory.get_subdirectory_client("deep")
    assert below.directory_path == "in here/deep" and not await below.exists()
    (same,) = [item async for item in it.service.list_shares("built")]
    assert it.service.get_share_client(same).share_name == "built"
