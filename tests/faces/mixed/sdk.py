"""The official Python client against a file that the mount side holds, row by row.

Usage: sdk.py READY_FILE ROWS. A row is an access, a share mode, and what each operation is to
come to: + success, - a sharing violation. Fails with an assertion where that is not so.
"""
import http.client
import json
import socket
import sys

from azure.core.exceptions import ResourceExistsError
from azure.storage.fileshare import ShareServiceClient

ready = json.load(open(sys.argv[1], encoding="utf-8"))
rows = json.loads(sys.argv[2])
service = ShareServiceClient.from_connection_string(ready["connection_string"])
share = service.get_share_client("share")


def lease(file):
    file.acquire_lease().break_lease()


OPERATIONS = [
    lambda file: file.download_file().readall(),
    lambda file: file.get_ranges(),
    lambda file: file.upload_range(b"AB", 0, 2),
    lambda file: file.resize_file(8),
    lambda file: file.set_file_metadata({"a": "b"}),
    lambda file: file.create_file(10),
    lease,
    lambda file: file.get_file_properties(),
    lambda file: file.delete_file(),
]


def hold(path, access, mode):
    """Holds the file as `latchfs hold` does, for as long as the connection lasts."""
    connection = http.client.HTTPConnection("latchfs")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(ready["control"])
    wanted = {"path": path, "access": access, "share_mode": mode, "while_connected": True}
    connection.request("POST", "/api/v1/holds", json.dumps(wanted))
    answer = connection.getresponse()
    granted = answer.readline()
    assert answer.status == 201, granted
    return answer


answers = 0
for number, (access, mode, expected) in enumerate(rows):
    assert len(expected) == len(OPERATIONS)
    file = share.get_file_client(f"f{number}")
    file.upload_file(b"0123456789")
    holder = hold(f"f{number}", access, mode)
    for place, (operation, wanted) in enumerate(zip(OPERATIONS, expected)):
        case = f"operation {place} against open({access}; {mode})"
        try:
            operation(file)
            assert wanted == "+", f"{case} was let through"
        except ResourceExistsError as error:
            assert wanted == "-", f"{case}: {error}"
            assert error.error_code == "SharingViolation", f"{case}: {error.error_code}"
            assert error.status_code == 409, case
        answers += 1
    holder.close()
print(f"{answers} answers as expected")
