package syslog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

// A message of the greatest length is taken in either framing, one byte more is
// too large.
func TestLongestMessage(t *testing.T) {
	for more := range 2 {
		text := strings.Repeat("x", 16+more)
		for name, frame := range map[string]string{
			"counted": fmt.Sprintf("%d <14>%s", 20+more, text),
			"LF":      "<14>" + text + "\n",
		} {
			texts, b, _ := decode(t, Protocol{MaxMessage: 20}, frame)
			if b.RejectedFor(normalize.ReasonTooLarge) != more || len(texts) != 1-more || more == 0 && texts[0] != text {
				t.Errorf("%s, %d more: %q, %+v", name, more, texts, b.Rejected)
			}
		}
	}
}

// A priority has three digits at most.
func TestLongPriority(t *testing.T) {
	for message, want := range map[string]string{"<0014>x": "<0014>x", "<014>x": "x"} {
		texts, _, _ := decode(t, Protocol{}, message+"\n")
		if len(texts) != 1 || texts[0] != want {
			t.Errorf("%s: %q", message, texts)
		}
	}
}
