// Package ui serves the page for people, which is part of the program, and knows the sessions
// of those who are logged in. collector/ui/page/README.md is for who changes the page.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Prefix is the path below which the page is.
const Prefix = "/ui/"

//go:embed page
var embedded embed.FS

// kinds are the Content-Types of what is served, by extension. Other files of the folder are
// for who changes the page.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// A File is one file of the page. It is a handler for GET and HEAD.
type File struct {
	kind, etag    string
	plain, packed []byte
}

// Files returns the files of the page by their paths; that of index.html is also Prefix. They are
// packed once in the life of the process.
var Files = sync.OnceValue(func() map[string]*File {
	files := make(map[string]*File)
	err := fs.WalkDir(embedded, "page", func(name string, d fs.DirEntry, err error) error {
		kind := kinds[path.Ext(name)]
		if err != nil || d.IsDir() || kind == "" || strings.HasSuffix(name, ".test.js") {
			return err
		}
		text, err := embedded.ReadFile(name)
		files[Prefix+strings.TrimPrefix(name, "page/")] = newFile(kind, text)
		return err
	})
	if err != nil {
		panic(err) // the files are in the program
	}
	files[Prefix] = files[Prefix+"index.html"]
	return files
})

func newFile(kind string, text []byte) *File {
	sum := sha256.Sum256(text)
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	z.Write(text)                                              // a Buffer takes all
	z.Close()
	return &File{kind: kind, etag: `W/"` + hex.EncodeToString(sum[:12]) + `"`, plain: text, packed: packed.Bytes()}
}

// policy is what the page may do: nothing that is not the collector's own, and no text becomes a
// document or a script. It is in no frame.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// SetSecure sets the headers of answers to the page that bind browsers.
func SetSecure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin") // see OwnPage
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", policy)
}

// ServeHTTP answers with the file, or 304 if the browser has it.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	SetSecure(h)
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache") // it is asked for again, so that modules are of one version
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	body := f.plain
	if takesGzip(r.Header) && len(f.packed) < len(f.plain) {
		h.Set("Content-Encoding", "gzip")
		body = f.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body) // a client that is gone needs no page
	}
}

func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(quality), "q="), "0.") != "" || quality == ""
		}
	}
	return false
}

// WantsPage reports whether a request for / is one of a browser, which is led to the page.
func WantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// pageHeader is what the page sends with each request.
const pageHeader = "Rollway-Page"

// OwnPage reports whether a browser marks a request as one that the collector's own page makes. What
// browsers add to requests by themselves, such as a cookie, counts for these alone. Browsers send
// Sec-Fetch-Site to TLS and loopback only. Elsewhere a header of the page tells, which no page of
// another origin may send, or else Origin or Referer.
func OwnPage(r *http.Request) bool {
	if site := r.Header["Sec-Fetch-Site"]; len(site) > 0 {
		return len(site) == 1 && site[0] == "same-origin"
	}
	if r.Header.Get(pageHeader) != "" {
		return true
	}
	for _, name := range []string{"Origin", "Referer"} {
		if list := r.Header[name]; len(list) > 0 {
			scheme, rest, _ := strings.Cut(list[0], "://")
			host, _, _ := strings.Cut(rest, "/")
			return len(list) == 1 && host != "" && strings.EqualFold(host, r.Host) && (scheme == "https" || scheme == "http" && r.TLS == nil)
		}
	}
	return false
}
