"""With --error-names=service a file that is delete pending has the service's own code."""

import json
import os
import pathlib
import sys

from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareClient

ready = json.loads(sys.argv[1])
share = ShareClient.from_connection_string(ready["connection_string"], "share", retry_total=0)
path = pathlib.Path(ready["mounts"]["share"]) / "pending.txt"
path.write_text("data")
held_open = os.open(path, os.O_RDWR)
path.unlink()
file = share.get_file_client("pending.txt")
for call in (file.download_file, file.get_file_properties, file.delete_file):
    try:
        call()
    except HttpResponseError as error:
        assert (error.status_code, error.error_code) == (409, "DeletePending"), error
    else:
        raise AssertionError(f"{call} was not refused")
os.close(held_open)
print("met")
