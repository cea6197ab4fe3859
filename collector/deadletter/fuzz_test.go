package deadletter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
)

// FuzzDeadLetter writes the dead letter of any event, context and names, and reads it back:
// it is one line of JSON, and says the same.
func FuzzDeadLetter(f *testing.F) {
	f.Add("/api/logs", "shop", []byte(`{"a":}`), []byte("ctx"), int64(1779972000), 1<<20)
	f.Add("Fluent forward", "", []byte("\xff\n\x00"), []byte(""), int64(0), 1<<20)
	f.Add("/v1/logs", "te\"nant", []byte("\xed\xa0\x80\u2028<"), []byte("\xff"), int64(-1), 6)
	f.Fuzz(func(t *testing.T, receiver, tenant string, event, context []byte, sec int64, limit int) {
		if !utf8.ValidString(receiver) || !utf8.ValidString(tenant) || sec < 0 || sec > 1<<33 || limit < 0 || len(event) == 0 {
			return
		}
		batch := new(normalize.Batch)
		batch.KeepDeadLetters(limit)
		b := normalize.New(normalize.Limits{MaxRejections: 1}).Build(batch, time.Now())
		b.Raw(event)
		b.Reject(normalize.ReasonSyntax, receiver)
		b.Context(len(context), func(dst []byte) []byte { return append(dst, context...) })
		b.Done()
		list := batch.DeadLetters()
		if len(list) != min(1, limit) {
			t.Fatalf("%d dead letters within %d bytes", len(list), limit)
		}
		for range list {
			at := time.Unix(sec, 5).UTC()
			k := kept{id: string(new(ulid.Source).Append(nil, at)), count: uint64(len(event)), last: at}
			line := appendLine(nil, &k, &list[0], batch, &Origin{Receiver: receiver, Tenant: tenant, Client: receiver, Time: at})
			if id, count, ok := parseHead(line); id != k.id || count != k.count || !ok || line[headSize-1] != ',' || line[headSize] != '"' {
				t.Fatalf("the head is %s %d %v: %q", id, count, ok, line)
			}
			copy(line[replayedAt:], "true ")
			k.count = 1 << 39
			copy(line[countAt:], appendCount(nil, &k))
			if bytes.Count(line, []byte("\n")) != 1 || !bytes.HasSuffix(line, []byte("\n")) {
				t.Fatalf("not one line: %q", line)
			}
			var got Entry
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			text, err := got.Text()
			around, errAround := got.ContextBytes()
			fits := len(context) <= normalize.MaxContext && min(len(event), limit)+len(context) <= limit
			if err != nil || errAround != nil || string(text) != string(event[:min(len(event), limit)]) || got.Cut != (len(event) > limit) ||
				fits != (around != nil) || got.ContextCut == fits || fits && string(around) != string(context) {
				t.Fatalf("%q with %q became %s", event, context, line)
			}
			if got.Receiver != receiver || got.Tenant != tenant || got.Reason != normalize.ReasonSyntax || strings.ToValidUTF8(got.Detail, "") != got.Detail || !got.Time.Equal(at) || !got.Last.Equal(at) || !got.Replayed || got.Count != k.count || got.ID != k.id || got.Client != receiver || got.Whole || got.Withheld {
				t.Fatalf("receiver %q, tenant %q, time %s became %s", receiver, tenant, at, line)
			}
		}
	})
}
