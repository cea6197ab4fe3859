package receivertest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/normalize/vectors"
	"github.com/rollway/rollway/collector/receiver"
)

// An Envelope is the least that a protocol wants around a JSON value for one
// event, and what it does with the value that leaves RFC 8259's choices open.
type Envelope struct {
	Before, Behind string
	Line           bool   // the value must be in one line
	Row            bool   // the body is values in a row: those before the fault are stored
	Only           string // what values must begin with; "": anything
	Mends          bool   // what is not UTF-8 becomes U+FFFD
	Flat           bool   // how deep the value nests is of no concern
	Unsized        bool   // nor is its size
}

func (e *Envelope) takes(v *vectors.Vector) bool {
	return strings.HasPrefix(v.Text, e.Only) && (!e.Line || v.OneLine())
}

func (e *Envelope) accepts(v *vectors.Vector) bool {
	switch {
	case v.Accept:
		return true
	case v.Choice == "" || v.Group == vectors.TooDeepToRead:
		return false
	case !v.UTF8:
		return e.Mends
	case v.Group == "size":
		return e.Unsized
	}
	return e.Flat
}

// Vectors sends JSON that must, must not or may be accepted, in each of the
// envelopes, to protocol p and checks what is stored and what is rejected.
// request makes a request of a body.
func Vectors(t *testing.T, p receiver.Protocol, request func(body string) *http.Request, envelopes ...Envelope) {
	values := vectors.Values()
	for i := range envelopes {
		e := &envelopes[i]
		var lines []byte
		store := func(_ context.Context, b *normalize.Batch, _ receiver.StoreOptions) (receiver.Stored, error) {
			lines = append(lines, b.Lines...)
			return receiver.Stored{}, nil
		}
		r := receiver.New(receiver.StoreFunc(store), receiver.Options{Limits: normalize.Limits{MaxFuture: -1, MaxPast: -1}})
		h := r.Handler(p)
		tried := 0
		for i := range values {
			v := &values[i]
			if !e.takes(v) {
				continue
			}
			tried++
			body := e.Before + v.Text + e.Behind
			before := r.Stats()
			lines = lines[:0]
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, request(body))
			after := r.Stats()
			stored, rejected := after.Stored-before.Stored, after.RejectedTotal()-before.RejectedTotal()
			wantStored, wantRejected := uint64(1), uint64(0)
			if !e.accepts(v) {
				wantStored, wantRejected = 0, 1
				if e.Row {
					wantStored = wholeValues(body)
				}
			}
			if stored != wantStored || rejected != wantRejected {
				t.Errorf("%s…%s, %s: %d stored, %d rejected, want %d and %d; %d %.200s", e.Before, e.Behind, v.Name(), stored, rejected, wantStored, wantRejected, rec.Code, rec.Body)
			}
			for line := range bytes.Lines(lines) {
				if !json.Valid(line) || !utf8.Valid(line) {
					t.Errorf("%s…%s, %s: the line %.300q is not JSON", e.Before, e.Behind, v.Name(), line)
				}
			}
		}
		if tried < 100 {
			t.Errorf("%s…%s: %d vectors were tried", e.Before, e.Behind, tried)
		}
	}
}

// wholeValues counts the objects at the beginning of a body.
func wholeValues(body string) (n uint64) {
	for dec := json.NewDecoder(strings.NewReader(body)); ; n++ {
		var v json.RawMessage
		if dec.Decode(&v) != nil || v[0] != '{' || !utf8.Valid(v) || len(v) > 1<<20 || bytes.Count(v, []byte("[")) > 100 || bytes.Count(v, []byte("{")) > 100 {
			return n
		}
	}
}
