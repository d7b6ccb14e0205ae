"""Greets whoever asks: by HTTP, by a cron trigger or by a job."""

import os


def handle(event, context):
    if "httpMethod" in event:
        name = (event.get("queryStringParameters") or {}).get("name", "world")
    else:
        name = event.get("name", "world")
    print(f"greeting {name}")
    return {"message": f"{os.environ['GREETING']}, {name}, from Python"}
