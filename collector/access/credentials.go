package access

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Credentials returns the secret that a request carries, in any of the ways in
// which clients carry one, or "":
//
//	Authorization: Bearer SECRET
//	Authorization: Splunk SECRET
//	Authorization: Basic base64(anything:SECRET)
//	Authorization: ApiKey base64(anything:SECRET)   or as it is: ApiKey SECRET
//	X-Sentry-Auth: Sentry …, sentry_key=SECRET, …   (also in Authorization)
//	DD-API-KEY: SECRET
//	?sentry_key=SECRET, ?dd-api-key=SECRET
func Credentials(r *http.Request) string {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, rest, _ := strings.Cut(h, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case strings.EqualFold(scheme, "Bearer"), strings.EqualFold(scheme, "Splunk"):
			return rest
		case strings.EqualFold(scheme, "Basic"):
			return afterColon(rest)
		case strings.EqualFold(scheme, "ApiKey"):
			if secret := afterColon(rest); secret != "" {
				return secret
			}
			return rest // a client that was given the secret for an encoded key
		case strings.EqualFold(scheme, "Sentry"):
			return sentryKey(rest)
		}
		return ""
	}
	if h := r.Header.Get("X-Sentry-Auth"); h != "" {
		scheme, rest, _ := strings.Cut(h, " ")
		if strings.EqualFold(scheme, "Sentry") {
			return sentryKey(rest)
		}
		return ""
	}
	if h := r.Header["Dd-Api-Key"]; len(h) > 0 {
		return h[0]
	}
	for _, name := range [...]string{"sentry_key", "dd-api-key"} {
		if strings.Contains(r.URL.RawQuery, name+"=") {
			if secret := r.URL.Query().Get(name); secret != "" {
				return secret
			}
		}
	}
	return ""
}

func afterColon(encoded string) string {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	_, secret, _ := strings.Cut(string(text), ":")
	return secret
}

func sentryKey(list string) string {
	for item := range strings.SplitSeq(list, ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(item), "="); ok && key == "sentry_key" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
