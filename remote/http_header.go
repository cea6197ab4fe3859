package remote

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// checkHeader refuses headers that net/http would refuse, and those that the Writer sets.
// It quotes names, never values.
func (o *Options) checkHeader(a *address) error {
	if !validHeaderValue(o.Token) || strings.TrimSpace(o.Token) != o.Token {
		return errors.New("Options.Token holds a control byte or outer white space (a line end from a file?): trim it")
	}
	header := http.Header{}
	for name, values := range o.Header {
		switch http.CanonicalHeaderKey(name) {
		case "Content-Encoding", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Expect", "Host", "Idempotency-Key", "Idempotency-After":
			return fmt.Errorf("Options.Header holds %q, which the Writer sets itself: leave it out", name)
		case "Authorization":
			if o.Token != "" {
				return errors.New("Options.Header holds Authorization and Options.Token is set: give one of them")
			}
		}
		if !validHeaderName(name) {
			return fmt.Errorf("Options.Header holds %q, which is no HTTP header name", name)
		}
		for _, v := range values {
			if !validHeaderValue(v) {
				return fmt.Errorf("the value of %q in Options.Header holds a control byte", name)
			}
			header.Add(name, v)
		}
	}
	o.Header = header
	if secret := o.Token != "" || header.Get("Authorization") != ""; secret && !a.tls && !a.loopback() && !o.AllowPlainToken {
		return errors.New("Options.Token or an Authorization header would pass the network unencrypted: use https, or allow it with Options.AllowPlainToken")
	}
	return nil
}

// validHeaderName reports whether s is a token of RFC 9110, section 5.6.2.
func validHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// validHeaderValue reports whether s has no control byte except the tab (RFC 9110,
// section 5.5).
func validHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
