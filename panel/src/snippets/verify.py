import base64
import hashlib
import hmac


def is_from_pombal(body: bytes, headers, secret: str) -> bool:
    """body: the raw body; headers: the headers of the request"""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # For 24 hours after a new secret was created, there is a signature with each of the two.
    given = headers.get("webhook-signature", "").encode().split()
    return any([hmac.compare_digest(expected, signature) for signature in given])
