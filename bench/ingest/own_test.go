package ingest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rollway/rollway/collector/receiver/otlp"
)

// BenchmarkOwn is a request of ours without net/http, the journal included.
func BenchmarkOwn(b *testing.B) {
	for _, p := range []protocol{pathJSON, pathOTLP} {
		for _, events := range sizes {
			b.Run(fmt.Sprintf("%s/%d", p, events), func(b *testing.B) {
				r, j, err := own{}.open(b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				defer j.Close()
				x, err := newExchange(events)
				if err != nil {
					b.Fatal(err)
				}
				var h http.Handler = r
				if p == pathOTLP {
					x.body = p.body(events)
					x.req.ContentLength = int64(len(x.body.data))
					x.req.Header.Set("Content-Type", "application/x-protobuf")
					h = r.Handler(otlp.Protocol)
				}
				next := uint64(0)
				b.ReportAllocs()
				for b.Loop() {
					if code := x.serve(h, next); code != http.StatusOK {
						b.Fatal(code)
					}
					next += uint64(events)
				}
			})
		}
	}
}
