package access

import (
	"net/url"
	"slices"
	"strings"
)

// An origin is where web pages come from that may use a token: a scheme, a host and a port
// as browsers write them, or with * in place of the first names of the host.
type origin struct{ text, begin, end string }

// parseOrigin reads "https://shop.example", "http://localhost:3000" or
// "https://*.shop.example".
func parseOrigin(text string) (origin, bool) {
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || strings.Count(text, "*") > 1 {
		return origin{}, false
	}
	host := u.Host
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	} else if u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":80")
	}
	o := origin{text: u.Scheme + "://" + host}
	if begin, end, wild := strings.Cut(o.text, "*"); wild {
		if begin != u.Scheme+"://" || len(end) < 2 || end[0] != '.' {
			return origin{}, false
		}
		o = origin{begin: begin, end: end}
	}
	return o, true
}

func (o origin) is(text string) bool {
	if o.text != "" {
		return o.text == text
	}
	name, is := strings.CutPrefix(text, o.begin)
	return is && len(name) > len(o.end) && strings.HasSuffix(name, o.end) && !strings.ContainsAny(name[:len(name)-len(o.end)], ":/@")
}

// OfPages reports whether the token is for web pages, and so may be public.
func (t *Token) OfPages() bool { return len(t.origins) > 0 }

// ListsOrigin reports whether pages of an origin may use the token. A nil Token has none.
func (t *Token) ListsOrigin(text string) bool {
	return t != nil && slices.ContainsFunc(t.origins, func(o origin) bool { return o.is(text) })
}

// ListsOrigin reports whether pages of an origin may use one of the tokens.
func (k *Keyring) ListsOrigin(text string) bool {
	return k != nil && slices.ContainsFunc(k.pages, func(t *Token) bool { return t.ListsOrigin(text) })
}
