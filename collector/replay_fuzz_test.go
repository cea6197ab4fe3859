package collector

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/endpoints"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/syslog"
	"github.com/rollway/rollway/collector/reread"
)

// keeping is a Backend of functions.
type keeping struct {
	add  func(*normalize.Batch)
	keep func(o receiver.Origin, b *normalize.Batch)
}

func (keeping) Policy() *receiver.Policy { return new(receiver.Policy) }

func (k keeping) Store(_ context.Context, b *normalize.Batch, _ receiver.StoreOptions) (receiver.Stored, error) {
	k.add(b)
	return receiver.Stored{}, nil
}

func (k keeping) Reject(o receiver.Origin, b *normalize.Batch) {
	k.keep(o, b)
}

// rejectedBy sends body to the receiver at path, with limits, and returns the lines that
// are stored, the dead letters of what is not, and how many events these are: one of
// no bytes has no dead letter.
func rejectedBy(t *testing.T, path, contentType string, body []byte, limits normalize.Limits) (lines []string, deadLetters []deadletter.Entry, rejected int) {
	t.Helper()
	keep := func(o receiver.Origin, b *normalize.Batch) {
		rejected += b.RejectedTotal
		for i := range b.DeadLetters() {
			l := &b.DeadLetters()[i]
			around := string(b.Context(l))
			deadLetter := deadletter.Entry{Time: o.Time, Receiver: o.Receiver, Count: uint64(l.Count), Reason: l.Reason, Event: string(b.Text(l)), Cut: l.Cut, Whole: l.Whole, ContextCut: l.ContextCut}
			if l.HasContext {
				deadLetter.Context = &around
			}
			deadLetters = append(deadLetters, deadLetter)
		}
	}
	add := func(b *normalize.Batch) {
		for line := range strings.Lines(string(b.Lines)) {
			lines = append(lines, line)
		}
	}
	if !strings.HasPrefix(path, "/") {
		batch := new(normalize.Batch)
		batch.KeepDeadLetters(1 << 30)
		c := &receiver.Chunk{Data: bytes.Clone(body), Received: time.Unix(1779972000, 0), Norm: normalize.New(limits), Batch: batch}
		switch path {
		case syslog.Protocol{}.Name():
			syslog.Protocol{}.DecodePacket(c)
		case gelf.Protocol{}.Name():
			gelf.Protocol{MaxMessage: 1 << 30}.DecodePacket(c)
		default:
			forward.Protocol{}.Open().Decode(c) // an error ends it, after what it has taken
		}
		add(batch)
		keep(receiver.Origin{Receiver: path, Time: c.Received}, batch)
		return lines, deadLetters, rejected
	}
	r := receiver.New(keeping{add, keep}, receiver.Options{Limits: limits, KeepRejected: 1 << 30})
	mux := http.NewServeMux()
	for _, d := range endpoints.All {
		if d.Protocol != nil && !d.GRPC {
			mux.Handle(d.Path, r.Handler(d.Protocol))
		}
	}
	req := httptest.NewRequest("POST", path, bytes.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	mux.ServeHTTP(httptest.NewRecorder(), req)
	return lines, deadLetters, rejected
}

// FuzzDeadLetters sends any body to a receiver twice: with a small limit on the size of
// events, and without limits. What the first has rejected becomes, read by
// its dead letters, the lines that the second has and the first has not: of events that
// are too long none is lost, changed or there twice.
func FuzzDeadLetters(f *testing.F) {
	receiver := func(path, contentType string) byte {
		for i, r := range rejectedRequests {
			if r.path == path && r.contentType == contentType {
				return byte(i)
			}
		}
		f.Fatalf("no request to %s in %q", path, contentType)
		return 0
	}
	for i, r := range rejectedRequests {
		f.Add(byte(i), []byte(r.body))
	}
	for _, m := range rejectedMessages() {
		f.Add(byte(len(rejectedRequests)), []byte(m))
	}
	f.Add(byte(len(rejectedRequests)+1), []byte("<12>1 2026-05-28T12:40:00Z - app 7 - - "+longText))
	f.Add(byte(len(rejectedRequests)+2), []byte(`{"host":"h","short_message":"`+longText+`","level":3}`))
	f.Add(byte(len(rejectedRequests)+2), []byte("\x1e\x0f12345678\x00\x01"+`{"host":"h","short_message":"`+longText+`"}`))
	f.Add(receiver("/_bulk", ""), []byte("{\"create\":{}}\n{\"message\":\"a\"}\n{\"delete\":{\"_id\":\"1\"}}\n{\"index\":{}}\n{\"message\":\""+longText+"\",\r\n"))
	f.Add(receiver("/services/collector/event", ""), []byte(`{"event":"a"}{"event":{"b":"`+longText+`"}}{"event":null}`))
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		if len(body) == 0 {
			return
		}
		path, contentType := forward.Protocol{}.Name(), ""
		switch n := int(which) % (len(rejectedRequests) + 3); {
		case n < len(rejectedRequests):
			path, contentType = rejectedRequests[n].path, rejectedRequests[n].contentType
		case n > len(rejectedRequests)+1:
			path = gelf.Protocol{}.Name()
		case n > len(rejectedRequests):
			path = syslog.Protocol{}.Name()
		}
		small := reread.NoLimits
		small.MaxEventBytes, small.MaxRejections = 300, math.MaxInt32
		got, deadLetters, rejected := rejectedBy(t, path, contentType, body, small)
		want, _, rest := rejectedBy(t, path, contentType, body, reread.NoLimits)
		if rest > 0 && len(want) == 0 {
			return // refused as a whole, perhaps for what follows an event that was too long
		}
		if len(got)+rejected != len(want)+rest {
			t.Fatalf("%s: %d lines and %d rejected of %q; without limits %d and %d", path, len(got), rejected, body, len(want), rest)
		}
		for i := range deadLetters {
			l := &deadLetters[i]
			if l.ContextCut || l.Whole {
				return // which the dead letter says
			}
			if l.Reason == normalize.ReasonTooLarge {
				for line := range strings.Lines(string(reread.Lines(l, reread.NoLimits))) {
					got = append(got, slices.Repeat([]string{line}, int(l.Count))...)
				}
			}
		}
		got, want = withoutReceipt(got), withoutReceipt(want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %q became, by dead letters,\n%s\nat once\n%s", path, body, strings.Join(got, ""), strings.Join(want, ""))
		}
	})
}

// withoutReceipt are lines without their time where it is that of receipt.
func withoutReceipt(lines []string) []string {
	for i, line := range lines {
		lines[i] = masked(line)
	}
	return lines
}
