package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
)

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Each file is served with headers that bind the browser, packed or not, and not again to a browser
// that has it.
func TestFiles(t *testing.T) {
	for name, f := range Files() {
		plain := get(f, name)
		if plain.Code != 200 || plain.Header().Get("Content-Type") == "" || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", name, plain.Code, plain.Header())
		}
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-cache",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Vary": "Accept-Encoding",
		} {
			if got := plain.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		packed := get(f, name, "Accept-Encoding", "br, gzip")
		if packed.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
				t.Errorf("%s: packed it is another: %v", name, err)
			}
		} else if plain.Body.Len() > 500 {
			t.Errorf("%s: %d bytes are not packed", name, plain.Body.Len())
		}
		if again := get(f, name, "If-None-Match", plain.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s again: %d, %d bytes", name, again.Code, again.Body.Len())
		}
		if no := get(f, name, "Accept-Encoding", "gzip;q=0, identity"); no.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is packed for who does not take it", name)
		}
	}
	if Files()[Prefix] == nil || Files()[Prefix] != Files()[Prefix+"index.html"] {
		t.Error("no index.html")
	}
}

// What is for who changes the page is not served.
func TestOnlyThePageIsServed(t *testing.T) {
	for name := range Files() {
		if ext := path.Ext(name); name != Prefix && kinds[ext] == "" || strings.HasSuffix(name, ".test.js") {
			t.Errorf("%s is served", name)
		}
	}
}

func TestOwnPage(t *testing.T) {
	for _, c := range []struct {
		tls    bool
		header []string
		want   bool
	}{
		{false, nil, false},
		{false, []string{"Sec-Fetch-Site", "same-origin"}, true},
		{false, []string{"Sec-Fetch-Site", "same-site"}, false},
		{false, []string{"Sec-Fetch-Site", "cross-site"}, false},
		{false, []string{"Sec-Fetch-Site", "none"}, false},
		{false, []string{"Sec-Fetch-Site", "same-site", "Rollway-Page", "1", "Origin", "http://logs.example:4318"}, false},
		{false, []string{"Rollway-Page", "1"}, true},
		{false, []string{"Origin", "http://logs.example:4318"}, true},
		{false, []string{"Origin", "https://logs.example:4318"}, true}, // a proxy speaks TLS
		{false, []string{"Origin", "http://logs.example:3000"}, false},
		{false, []string{"Origin", "http://logs.example"}, false},
		{false, []string{"Origin", "null", "Referer", "http://logs.example:4318/ui/"}, false},
		{false, []string{"Referer", "http://logs.example:4318/ui/?q=x"}, true},
		{false, []string{"Referer", "http://evil.example/http://logs.example:4318/ui/"}, false},
		{false, []string{"Referer", "http://logs.example:4318@evil.example/"}, false},
		{true, []string{"Origin", "http://logs.example:4318"}, false},
		{true, []string{"Origin", "https://logs.example:4318"}, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://logs.example:4318/api/query", nil)
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		} else {
			r.TLS = nil
		}
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		if got := OwnPage(r); got != c.want {
			t.Errorf("%v over TLS %v: %v", c.header, c.tls, got)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://logs.example:4318/", nil)
	r.Header["Sec-Fetch-Site"] = []string{"same-origin", "cross-site"}
	if OwnPage(r) {
		t.Error("the first of two headers counts")
	}
}
