"""Sends visits to the topic visits on this machine: pip install confluent-kafka."""

import json
from datetime import datetime, timezone

from confluent_kafka import Producer

# Acknowledged by all replicas, and not twice in the topic where an acknowledgement was lost.
producer = Producer({"bootstrap.servers": "127.0.0.1:9092", "enable.idempotence": True})


def told(error, message):
    if error:
        print("not sent:", error)


for n in range(100):
    visit = {
        "uri": f"https://blog.example/{n % 7}",
        "ip": f"192.0.2.{n % 40}",
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    producer.produce("visits", value=json.dumps(visit), on_delivery=told)
    producer.poll(0)
producer.flush()
