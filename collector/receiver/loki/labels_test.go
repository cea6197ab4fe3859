package loki

import (
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"

	"github.com/rollway/rollway/collector/receiver"
)

// A stream of very many small labels is refused before they take up memory that the
// budget does not know of, in whichever form it comes.
func TestManySmallLabels(t *testing.T) {
	s := newServer(t, func(o *receiver.Options) { o.MaxBody, o.MaxUnpacked, o.InFlight = 8<<20, 8<<20, 80<<20 })
	const many = 1 << 20
	for name, tt := range map[string][2]string{
		"JSON":             {ofJSON, `{"streams":[{"stream":{` + strings.Repeat(`"":"",`, many) + `"":""},"values":[["1","x"]]}]}`},
		"labels as text":   {ofProto, string(snappy.Encode(nil, []byte(push1("{"+strings.Repeat(`a="",`, many)+`a=""}`, entryOf("x")))))},
		"without an entry": {ofJSON, `{"streams":[{"stream":{` + strings.Repeat(`"":"",`, many) + `"":""}}]}`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, answer := s.post(tt[0], tt[1])
		runtime.ReadMemStats(&after)
		if code != 413 || !strings.Contains(answer, "share") {
			t.Errorf("%s: %d %q", name, code, answer)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 160<<20 { // the labels alone would be more
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
	}
	if st := s.Stats(); st.InFlight != 0 {
		t.Errorf("%d bytes of the budget are kept", st.InFlight)
	}
}

// What is kept for the next request points to nothing of this one.
func TestNothingOfLabelsIsKept(t *testing.T) {
	r := new(reader)
	r.q = new(receiver.Request)
	for _, labels := range []string{`{a="1",b="2",c="3"}`, `{a="1"}`} {
		r.labels, r.values = r.labels[:0], r.values[:0]
		if err := r.parseLabels([]byte(labels)); err != nil {
			t.Fatal(err)
		}
	}
	r.release()
	for _, p := range r.labels[:cap(r.labels)] {
		if p.name != nil || p.value != nil {
			t.Errorf("%q=%q", p.name, p.value)
		}
	}
	r = new(reader)
	r.labels = make([]pair, keepPairs+1)
	if r.release(); r.labels != nil {
		t.Errorf("%d labels are kept", cap(r.labels))
	}
}
