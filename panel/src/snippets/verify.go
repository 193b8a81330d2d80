package pombal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// IsFromPombal takes the raw body and the headers of the request.
func IsFromPombal(body []byte, headers http.Header, secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(headers.Get("webhook-id") + "." + headers.Get("webhook-timestamp") + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// For 24 hours after a new secret was created, there is also a signature with each former secret.
	for _, given := range strings.Fields(headers.Get("webhook-signature")) {
		if hmac.Equal([]byte(expected), []byte(given)) {
			// Each attempt has a new timestamp, so an old one means that somebody posts a recorded request again.
			seconds, err := strconv.ParseInt(headers.Get("webhook-timestamp"), 10, 64)
			return err == nil && time.Since(time.Unix(seconds, 0)).Abs() <= 5*time.Minute
		}
	}
	return false
}
