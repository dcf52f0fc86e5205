"""Which client did what: two threads on one pool of connections, SAS made with a client's key, and
processes in Python and Node, with keys and without. Called with the folder of the SDK for Node; prints
`met` at the end.
"""

import subprocess
import sys
import threading
import time

import requests
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import BlobClient, ContainerClient, generate_blob_sas

from latchfs import Server

ROUNDS = 50
NODE = """
const { BlockBlobClient } = require(process.argv[1]);
const [, , string, name] = process.argv;
const blob = new BlockBlobClient(string, "box", name);
blob.upload("0", 1).then(() => blob.downloadToBuffer());
process.stdin.resume();
"""
PYTHON = """
import sys
from azure.storage.blob import BlobClient
blob = BlobClient.from_connection_string(sys.argv[1], "box", sys.argv[2])
blob.upload_blob("0", overwrite=True)
blob.download_blob().readall()
sys.stdin.read()
"""
"""Both keep their connection until they are told to end: a process that has ended has no name."""


def senders(server, name):
    """The clients of the requests for a blob, and how they are known."""
    rows = server.events(kind="request")
    return {(row["client"], row["client_by"]) for row in rows if row["object"] == f"blob:box/{name}"}


def threads(server):
    session = requests.Session()

    def work(client):
        # One pool for both.
        transport = RequestsTransport(session=session, session_owner=False)
        blob = BlobClient.from_connection_string(
            server.client(client), "box", f"of-{client}", transport=transport
        )
        for turn in range(ROUNDS):
            blob.upload_blob(str(turn), overwrite=True)
            blob.download_blob().readall()

    both = [threading.Thread(target=work, args=client) for client in "AB"]
    for one in both:
        one.start()
    for one in both:
        one.join()
    for client in "AB":
        assert senders(server, f"of-{client}") == {(client, "key")}, client
    connections = {
        row["connection"]
        for row in server.events(kind="request")
        if row["object"] in ("blob:box/of-A", "blob:box/of-B")
    }
    print(f"{4 * ROUNDS} requests of two threads on {len(connections)} connections")


def sas(server):
    key = dict(part.split("=", 1) for part in server.client("A").split(";") if part)["AccountKey"]
    token = generate_blob_sas(
        server.account, "box", "by-sas", account_key=key, permission="rcw", expiry="2099-01-01"
    )
    blob = BlobClient.from_blob_url(f"{server.endpoints['blob']}/box/by-sas?{token}")
    blob.upload_blob("0")
    assert blob.download_blob().readall() == b"0"
    assert senders(server, "by-sas") == {("A", "key")}


def processes(server, node_sdk):
    for client in ("python", "node"):
        for has_key in (True, False):
            string = server.client(client) if has_key else server.connection_string
            name = f"{client}-{has_key}"
            program = [sys.executable, "-c", PYTHON, string, name]
            if client == "node":
                program = ["node", "-e", NODE, node_sdk, string, name]
            with subprocess.Popen(program, stdin=subprocess.PIPE) as running:
                found = known(server, name)
                running.communicate()
            assert running.returncode == 0
            if has_key:
                assert found == {(client, "key")}, found
            else:
                assert all(by in ("process", "thread") for _, by in found), found
                assert all(one.startswith(client) for one, _ in found), found


def known(server, name):
    """The clients of the requests for a blob, once their process was looked up."""
    end = time.monotonic() + 30
    while True:
        found = senders(server, name)
        is_known = found and all(by != "address" for _, by in found)
        if is_known or time.monotonic() > end:
            return found
        time.sleep(0.05)


def main():
    with Server() as server:
        ContainerClient.from_connection_string(server.connection_string, "box").create_container()
        threads(server)
        sas(server)
        processes(server, sys.argv[1])
        # What is known of a process alone makes no error.
        assert not server.report(level="error")["findings"]
    print("met")


main()
