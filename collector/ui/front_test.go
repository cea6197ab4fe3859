package ui_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// front serves the page before a collector.
func front(t testing.TB, at string) string {
	to, _ := url.Parse(at)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	mux := http.NewServeMux()
	files := http.StripPrefix("/ui/", http.FileServer(http.Dir("page")))
	mux.HandleFunc("/ui/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
	mux.HandleFunc("/ui/session", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{"authenticated":true}`)) })
	mux.Handle("/", proxy)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}
