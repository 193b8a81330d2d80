import hashlib
import hmac


def is_from_pombal(body: bytes, signature: str, secret: str) -> bool:
    """body: the raw body; signature: the header X-Service-Signature"""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())
