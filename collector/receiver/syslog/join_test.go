package syslog

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

// TestJoinedMessages sends a stack trace message by message over a connection: it is one
// event. A datagram stays one.
func TestJoinedMessages(t *testing.T) {
	head := "<11>1 2026-01-01T00:00:00Z h shop 7 - - "
	stream := head + "it failed\n" + head + "\tat a.B(C.java:7)\n" + head + "Caused by: x\n" + strings.Replace(head, "shop", "cart", 1) + " of another\n" + head + "done\n"
	want := []string{`"msg":"it failed\n\tat a.B(C.java:7)\nCaused by: x"`, `"msg":" of another"`, `"msg":"done"`}
	for _, apart := range []bool{false, true} {
		chunk := newChunk(stream)
		chunk.Norm = newNorm(apart)
		n, err := Protocol{}.Open().Decode(chunk)
		if n != len(stream) || err != nil {
			t.Fatal(n, err)
		}
		if got := strings.Split(string(chunk.Batch.Lines), "\n"); apart && chunk.Batch.Records != 5 || !apart && chunk.Batch.Records != len(want) {
			t.Errorf("apart %v: %q", apart, got)
		} else if !apart {
			for i, w := range want {
				if !strings.Contains(got[i], w) {
					t.Errorf("%s has no %s", got[i], w)
				}
			}
		}
	}
}

func newNorm(apart bool) *normalize.Normalizer {
	return normalize.New(normalize.Limits{Text: normalize.Text{Apart: apart}})
}
