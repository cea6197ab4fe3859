package splunk

import (
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// What is left of a body behind text that is not JSON is kept as it was sent.
func TestBrokenRestIsKept(t *testing.T) {
	var kept []string
	s := decodetest.NewServer(t, nil)
	s.OnReject = func(b *normalize.Batch) {
		for i := range b.DeadLetters() {
			kept = append(kept, string(b.Text(&b.DeadLetters()[i])))
		}
	}
	decodetest.Send(s.Handler(Event), "/", `{"event":"x"}{"event":oops}{"event":"y"}`)
	if len(s.Lines) != 1 || len(kept) != 1 || kept[0] != `{"event":oops}{"event":"y"}` {
		t.Errorf("%q, kept %q", s.Lines, kept)
	}
}
