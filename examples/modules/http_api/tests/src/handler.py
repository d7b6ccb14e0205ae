import os


def handle(event, context):
    return {"stage": os.environ.get("STAGE", ""), "path": event.get("path", "")}
