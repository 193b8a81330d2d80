package pombal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// IsFromPombal takes the raw body and the header X-Service-Signature.
func IsFromPombal(body []byte, signature, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}
