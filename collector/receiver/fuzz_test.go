package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

// FuzzRequest sends any body under any encoding to a store that fails for
// some, and checks the answer and the ledger.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{article, "{}\nbad\n{}", "[1,{}]", "", "\x1f\x8b", gzipped("{}\n{}"), gzipped("{}")[:15], gzipped("{}", "bad")} {
		for _, encoding := range []string{"", "gzip", "compress"} {
			f.Add([]byte(body), encoding, byte(0))
			f.Add([]byte(body), encoding, byte(1))
		}
	}
	for _, p := range packers {
		f.Add([]byte(p.pack("{}\n{}")), p.header, byte(0))
	}
	f.Fuzz(func(t *testing.T, body []byte, encoding string, fail byte) {
		stored := 0
		store := func(_ context.Context, b *normalize.Batch, _ StoreOptions) (s Stored, err error) {
			switch fail % 4 {
			case 1:
				return s, ErrFull
			case 2:
				return s, errOther
			case 3:
				panic("fuzzed")
			}
			stored += b.Records
			return s, nil
		}
		r := New(StoreFunc(store), Options{MaxBody: 1 << 16, MaxUnpacked: 1 << 18})
		for range 2 { // the second with what the first left in the pool
			before := stored
			req := httptest.NewRequest("POST", "/", bytes.NewReader(body))
			req.Header["Content-Encoding"] = []string{encoding}
			res := httptest.NewRecorder()
			r.ServeHTTP(res, req)
			var rep reply
			if err := json.Unmarshal(res.Body.Bytes(), &rep); err != nil {
				t.Fatalf("answer %q: %v", res.Body, err)
			}
			switch res.Code {
			case 200, 400, 413, 415, 500, 503:
			default:
				t.Fatalf("status %d", res.Code)
			}
			if rep.Accepted != stored-before || rep.Accepted > 0 && res.Code != 200 {
				t.Fatalf("%d %s, but %d stored", res.Code, res.Body, stored-before)
			}
		}
		s := r.Stats()
		if s.Received != s.Stored+s.RejectedTotal()+s.Failed || s.Stored != uint64(stored) || s.InFlight != 0 {
			t.Fatalf("%+v, %d stored", s, stored)
		}
	})
}
