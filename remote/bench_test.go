package remote_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/remote"
)

// batch returns a full slab of lines that differ as log lines do.
func batch() []byte {
	var b strings.Builder
	for i := 0; ; i++ {
		line := fmt.Sprintf(`{"time":"2026-05-28T12:40:%02d.%09dZ","level":"INFO","msg":"charged","service":"payment-api","trace_id":"%032x","attrs":{"customer_id":"cus_%d","region":"eu-west","amount_cents":%d,"retry_count":%d}}`+"\n",
			i/1000%60, i*7919%1_000_000_000, i*2654435761, i*31%9973, i*131%100_000, i%3)
		if b.Len()+len(line) > 64<<10 {
			return []byte(b.String())
		}
		b.WriteString(line)
	}
}

func discard(c net.Conn, _ io.Writer) { io.Copy(io.Discard, c) }

// BenchmarkWrite sends 64 KiB batches to a peer on the same machine, which
// reads and discards them; the time is that of both sides.
func BenchmarkWrite(b *testing.B) {
	p := batch()
	run := func(name, url string, o remote.Options) {
		b.Run(name, func(b *testing.B) {
			w := open(b, url, o)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Write(p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(w.Stats().BytesSent)/float64(b.N), "sent/op")
		})
	}
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer web.Close()
	run("http/none", web.URL+"/", remote.Options{DisableCompression: true})
	run("http/gzip", web.URL+"/", remote.Options{Compress: remote.Gzip{}})
	raw := startTCPPeer(b, "127.0.0.1:0", nil, discard)
	run("tcp", "tcp://"+raw.Addr().String(), remote.Options{})
	ca := newAuthority(b)
	secure := startTCPPeer(b, "127.0.0.1:0", ca.server(b, "127.0.0.1"), discard)
	run("tls", "tls://"+secure.Addr().String(), remote.Options{TLSConfig: &tls.Config{RootCAs: ca.pool}})
}
