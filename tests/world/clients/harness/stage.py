"""What rounds play on: the server, clients of it, and the face of the SDK that makes them."""

import contextlib

# A refusal that is tried again looks like a hang.
ONCE = {"retry_total": 0}


class Stage:
    """The server and its clients. `facts`: where it is, as `play` gets it."""

    def __init__(self, facts, face):
        self.face = face
        self.account, self.key = facts["account"], facts["key"]
        self.endpoint, self.connection = facts["endpoint"], facts["connection_string"]
        by_string = getattr(face, face.library.clients[0]).from_connection_string
        self.service = by_string(self.connection, **ONCE)
        # The first letter of the key is another.
        self.stranger = by_string(self.connection.replace("AccountKey=E", "AccountKey=F"), **ONCE)

    @contextlib.asynccontextmanager
    async def opened(self, name, *args, **kwargs):
        """A client by its constructor, closed again."""
        client = getattr(self.face, name)(self.endpoint, *args, **kwargs, **ONCE)
        try:
            yield client
        finally:
            await client.close()

    def by(self, credential, **more):
        """A client of the service by its constructor, closed again."""
        return self.opened(self.face.library.clients[0], credential=credential, **more)

    def mirrored(self, key):
        """A client that knows the secondary of the account."""
        host = f"{self.endpoint.removeprefix('http://')}-secondary"
        return self.by(key, secondary_hostname=host)

    async def close(self):
        await self.service.close()
        await self.stranger.close()
