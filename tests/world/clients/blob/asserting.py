"""What rounds of blobs assert with: content, and two IDs of leases."""

import inspect

A = "00000000-0000-4000-8000-00000000000a"
B = "00000000-0000-4000-8000-00000000000b"


async def whole(download):
    """The content of what `download_blob` gave."""
    content = download.readall()
    return await content if inspect.isawaitable(content) else content


async def text(blob, **more):
    """The content of a blob."""
    return await whole(await blob.download_blob(**more))
