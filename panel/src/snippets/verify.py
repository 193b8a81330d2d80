import base64
import hashlib
import hmac
import time


def is_from_pombal(body: bytes, headers, secret: str) -> bool:
    """body: the raw body; headers: the headers of the request"""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # For 24 hours after a new secret was created, there is also a signature with each former secret.
    given = headers.get("webhook-signature", "").encode().split()
    if not any([hmac.compare_digest(expected, signature) for signature in given]):
        return False
    # Each attempt has a new timestamp, so an old one means that somebody posts a recorded request again.
    return abs(time.time() - int(headers.get("webhook-timestamp"))) <= 300
