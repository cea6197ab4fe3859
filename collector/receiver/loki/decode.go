// Package loki takes logs as Grafana Loki does: JSON, or protocol buffers
// packed by snappy, also without a Content-Encoding that says so.
//
// An entry whose line is a JSON object becomes the event that the object is, by
// the table of known keys of package normalize: so canonical lines pass. Any
// other line is msg. The entry's timestamp is the event's time, unless the
// object has one; if they differ it is kept in attrs as entry_time. Labels and
// structured metadata come after that, by the same table; service_name is a
// service, too, and a label that says of the level what the object says already
// is left out.
//
// If entries were rejected the answer is 400 with their number, and the others are
// stored all the same.
//
// Entries of a stream that only continue the one before them, see textlog.Joiner, belong to
// its event, which has the time of the first. Their structured metadata is the same.
//
// protobuf.go and json.go read the two forms; join.go joins entries; event.go makes an
// event of each.
package loki

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/collector/textlog"
)

// Protocol is Loki's push.
var Protocol receiver.Protocol = push{}

type push struct{}

// isJSON reports whether a request is in JSON. All else is protocol buffers,
// as it is for Loki.
func isJSON(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// Packing makes the Protocol a receiver.Packer.
func (push) Packing(h http.Header) string {
	if isJSON(h) {
		return ""
	}
	return "snappy"
}

func (push) Decode(q *receiver.Request) error {
	r := readers.Get()
	defer r.release()
	if isJSON(q.HTTP.Header) {
		return r.readJSON(q)
	}
	return r.readProtobuf(q)
}

// reader makes events of a PushRequest. Nothing in it outlives the request.
type reader struct {
	q        *receiver.Request
	b        *normalize.Builder
	copied   int    // bytes of labels that are copied to be read
	labels   []pair // of the stream
	metadata []pair // of the entry
	values   []byte // texts of labels and of the entry that had escapes
	time     []byte // scratch
	joiner   textlog.Joiner

	wire.JSON
}

// pair is a label or a piece of metadata.
type pair struct{ name, value []byte }

var readers = pool.Pool[*reader]{New: func() *reader { return &reader{time: make([]byte, 0, 40)} }}

// From these sizes on memory does not go back to the pool.
const (
	keepScratch = 1 << 20 // bytes
	keepPairs   = 1 << 10
)

// begin begins to read a request.
func (r *reader) begin(q *receiver.Request) {
	r.q = q
	r.b = q.Norm.Build(q.Batch, q.Received)
}

func (r *reader) release() {
	r.q, r.b, r.copied, r.joiner = nil, nil, 0, textlog.Joiner{}
	for _, pairs := range []*[]pair{&r.labels, &r.metadata} {
		clear((*pairs)[:cap(*pairs)]) // an earlier stream may have had more
		*pairs = (*pairs)[:0]
		if cap(*pairs) > keepPairs {
			*pairs = nil
		}
	}
	if cap(r.values) > keepScratch {
		r.values = nil
	}
	r.values = r.values[:0]
	r.JSON.Release(keepScratch)
	readers.Put(r)
}

// Memory is for the pool.
func (r *reader) Memory() pool.Memory { return pool.Memory{r.values, r.time, r.JSON.Memory()} }

// pairBytes is what a pair takes up in memory besides its text, and once more for the
// list that it is copied from.
const pairBytes = 96

// add adds a pair to a list. There may be many that are small.
func (r *reader) add(list *[]pair, p pair) error {
	if n := len(*list); n == cap(*list) {
		if err := r.reserve(n+8, 0); err != nil {
			return err
		}
		*list = slices.Grow(*list, n+8)
	}
	*list = append(*list, p)
	return nil
}

// room makes room for n bytes more in values.
func (r *reader) room(n int) error {
	if len(r.values)+n <= cap(r.values) {
		return nil
	}
	n = max(n, cap(r.values))
	if err := r.reserve(0, n); err != nil {
		return err
	}
	r.values = slices.Grow(r.values, n)
	return nil
}

// reserve takes memory from the budget for more pairs and bytes of values, besides those
// that there are, which are copied.
func (r *reader) reserve(pairs, values int) error {
	pairs += cap(r.labels) + cap(r.metadata)
	return r.q.Reserve(int64(2*cap(r.values)+values+r.copied) + pairBytes*int64(pairs))
}

// parseLabels reads labels as Prometheus writes them: {name="value", …}, values
// quoted as in Go.
func (r *reader) parseLabels(text []byte) error {
	r.copied = max(r.copied, len(text))
	if err := r.room(len(text)); err != nil {
		return err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return nil
	}
	bad := func() error {
		return fmt.Errorf("the body is not a valid push request: labels %.100q are not of the form {name=\"value\"}; nothing was stored", text)
	}
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return bad()
	}
	s = strings.TrimSpace(s[1 : len(s)-1])
	for s != "" {
		name, after, found := strings.Cut(s, "=")
		if name = strings.TrimSpace(name); !found || name == "" {
			return bad()
		}
		after = strings.TrimLeft(after, " ")
		quoted, _ := strconv.QuotedPrefix(after)
		value, err := strconv.Unquote(quoted)
		if err != nil { // of either
			return bad()
		}
		if err := r.label(name, value); err != nil {
			return err
		}
		if s, found = strings.CutPrefix(strings.TrimSpace(after[len(quoted):]), ","); !found && s != "" {
			return bad()
		}
		s = strings.TrimSpace(s)
	}
	return nil
}

// label adds a label, whose text is kept in values.
func (r *reader) label(name, value string) error {
	part := func(s string) []byte {
		start := len(r.values)
		r.values = append(r.values, s...)
		return r.values[start:len(r.values):len(r.values)]
	}
	return r.add(&r.labels, pair{part(name), part(value)})
}
