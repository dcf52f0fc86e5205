"""What the rounds of az on blobs, queues and tables share: its settings, and running a command."""
import json

from common import folder, ready, run

ENV = {
    "AZURE_CONFIG_DIR": str(folder / "config"),
    "AZURE_STORAGE_CONNECTION_STRING": ready["connection_string"],
    "AZURE_CORE_COLLECT_TELEMETRY": "false",
    "AZURE_CORE_NO_COLOR": "true",
    "AZURE_CORE_ONLY_SHOW_ERRORS": "true",
    "AZURE_CORE_DISABLE_PROGRESS_BAR": "true",
}


def az(*words, status=0):
    """What a storage command answers, read as JSON."""
    text = run("storage", *words, "--output", "json", env=ENV, status=status)
    return json.loads(text) if text.strip() else None
