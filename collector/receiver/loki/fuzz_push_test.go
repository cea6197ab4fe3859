package loki

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// FuzzPush sends any body as a PushRequest, with limits and without: of one that
// the reference's reader takes apart each entry is stored or rejected, of one that
// it does not nothing is stored.
func FuzzPush(f *testing.F) {
	f.Add([]byte(push1(`{app="shop", level="warn"}`, entryOf("text"), entryOf(`{"a":1}`, "b", "c"))))
	f.Add([]byte(push1(`{a="b"}`, entryOf("x")) + push1(`{}`) + push1(`{`, entryOf("y"))))
	f.Add([]byte(push1(`{a="b"}`, entryOf("x"))[:20]))
	f.Add([]byte(push1(`{a="b"}`, message(2, text(1, "\xff")), message(2, number(1, 7), text(2, "line")))))
	decodetest.AddRecorded(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		entries, whole := countEntries(body)
		for _, limits := range decodetest.FuzzLimits() {
			batch := new(normalize.Batch)
			q := &receiver.Request{HTTP: httptest.NewRequest("POST", "/", nil), Body: bytes.Clone(body), Received: received, Norm: normalize.New(limits), Batch: batch}
			err := Protocol.Decode(q)
			if err != nil {
				continue // nothing of the batch is stored then
			}
			decodetest.CheckLines(t, batch)
			if !whole || batch.Records+batch.RejectedTotal != entries {
				t.Fatalf("%x: %d stored, %d rejected of %d, whole: %t", body, batch.Records, batch.RejectedTotal, entries, whole)
			}
		}
	})
}

// countEntries counts the entries of the streams of msg, and reports whether its
// fields and those of its streams are whole.
func countEntries(msg []byte) (n int, whole bool) {
	streams, whole := submessages(msg, 1)
	for _, s := range streams {
		entries, ok := submessages(s, 2)
		n += len(entries)
		whole = whole && ok
	}
	return n, whole
}

func submessages(msg []byte, num protowire.Number) (all [][]byte, whole bool) {
	for len(msg) > 0 {
		got, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return all, false
		}
		size := protowire.ConsumeFieldValue(got, typ, msg[n:])
		if size < 0 {
			return all, false
		}
		if got == num && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(msg[n:])
			all = append(all, v)
		}
		msg = msg[n+size:]
	}
	return all, true
}

// FuzzJSON sends any JSON that encoding/json takes for a push request: each of its
// values is stored or rejected, or the request is refused.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","x",{"c":"d"}],["2","{\"e\":1}"]]},{"values":[]}]}`))
	f.Add([]byte(`{"streams":[{"values":[["1779972000000000001","y"],["","z"]],"stream":{"a":"b"}}],"x":[{"values":[["1","n"]]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var push struct {
			Streams []struct {
				Stream map[string]string
				Values [][]any
			}
		}
		known := json.Unmarshal(body, &push) == nil && distinct(body)
		values := 0
		for _, s := range push.Streams {
			values += len(s.Values)
		}
		for _, limits := range decodetest.FuzzLimits() {
			req := httptest.NewRequest("POST", "/", nil)
			req.Header.Set("Content-Type", ofJSON)
			batch := new(normalize.Batch)
			q := &receiver.Request{HTTP: req, Body: bytes.Clone(body), Received: received, Norm: normalize.New(limits), Batch: batch}
			if err := Protocol.Decode(q); err != nil {
				continue
			}
			decodetest.CheckLines(t, batch)
			if known && batch.Records+batch.RejectedTotal != values {
				t.Fatalf("%s: %d stored, %d rejected of %d", body, batch.Records, batch.RejectedTotal, values)
			}
		}
	})
}

// distinct reports whether no name in body but those that encoding/json takes
// exactly is one of a push request's, in another case or twice: it and the receiver
// differ on which counts.
func distinct(body []byte) bool {
	lower := bytes.ToLower(body)
	for _, name := range []string{"stream", "streams", "values", "entries", "labels"} {
		quoted := []byte(`"` + name + `"`)
		if n := bytes.Count(lower, quoted); n != bytes.Count(body, quoted) || n > 1 {
			return false
		}
	}
	return !bytes.Contains(body, []byte(`\u`)) && !bytes.Contains(body, []byte(`"entries"`))
}
