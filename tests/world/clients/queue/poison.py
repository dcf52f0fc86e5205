"""The loop of `docs/queue.md` against a running server: bad messages end in the second queue.

Usage: poison.py PAGE FACTS. The loop is read from the page, so that the page cannot differ.
"""

import json
import pathlib
import sys

from azure.storage.queue import QueueServiceClient

facts = json.loads(sys.argv[2])
page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
code = {}
exec(page.split("```python\n")[1].split("```")[0], code)

service = QueueServiceClient.from_connection_string(facts["connection_string"], retry_total=0)
queue, poison = service.create_queue("work"), service.create_queue("work-poison")
for text in ("good", "bad", "shaky"):
    queue.send_message(text)
tries = {"good": 0, "bad": 0, "shaky": 0}


def handle(text):
    tries[text] += 1
    if text == "bad" or (text == "shaky" and tries[text] < 3):
        raise ValueError(text)


for _ in range(5):
    code["work"](queue, poison, handle)

assert tries == {"good": 1, "bad": 3, "shaky": 3}, tries
assert queue.get_queue_properties().approximate_message_count == 0
assert [message.content for message in poison.receive_messages()] == ["bad"]
print("met")
