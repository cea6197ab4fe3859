package syslog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

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

// What is almost a time, a tag, a host or structured data stays in the text.
func TestAlmost(t *testing.T) {
	tag, host := strings.Repeat("t", 127), strings.Repeat("h", 255)
	for _, c := range []struct{ message, text, attrs string }{
		// Times.
		{"Oct 11 24:14:15 h t: x", "", ""},
		{"Oct 11 22:60:15 h t: x", "", ""},
		{"Oct 11 22:14:61 h t: x", "", ""},
		{"Oct  0 22:14:15 h t: x", "", ""},
		{"Oct 32 22:14:15 h t: x", "", ""},
		{"Oct 11 22-14:15 h t: x", "", ""},
		{"Oct 11 22:14-15 h t: x", "", ""},
		{"Oct 11 22:14: h t: x", "", ""},
		{"Oct 11 22:14", "", ""},
		{"Oct11 22:14:15 h t: x", "", ""},
		{"Oct 1122:14:15 h t: x", "", ""},
		{"Okt 11 22:14:15 h t: x", "", ""},
		{"Oct", "", ""},
		{"Oct 11 22:14:15x h t: x", "", ""},
		{"Oct 11 22:14:15.x h t: x", "", ""},
		{"Oct 11 22:14:60 h t: x", "x", `"service":"t","attrs":{"facility":"user","host":"h"}`}, // a leap second
		{"Oct 11 22:14:15", "", `"attrs":{"facility":"user","peer":"192.0.2.7"}`},
		{"2026-05-28x14:40:00Z h t: x", "", ""},
		{"2026/05-28T14:40:00Z h t: x", "", ""},
		{"2026-05/28T14:40:00Z h t: x", "", ""},
		{"2026-05-28T14.40:00Z h t: x", "", ""},
		{"2026-05-28T14:40.00Z h t: x", "", ""},
		{"2026-05-28T14:40:00Z: x", "x", `"attrs":{"facility":"user","peer":"192.0.2.7"}`},
		// Tags.
		{"Jan  1 00:00:00 h " + tag + "t: x", "x", `"service":"` + tag + `t","attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h " + tag + "tt: x", tag + "tt: x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h t[]: x", "t[]: x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h t[1 2]: x", "t[1 2]: x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h t[12: x", "t[12: x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h t[12]x", "t[12]x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h t:x", "t:x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h : x", ": x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h t\u007f: x", "t\u007f: x", `"attrs":{"facility":"user","host":"h"}`},
		{"Jan  1 00:00:00 h t[12]", "", `"service":"t","attrs":{"facility":"user","host":"h","procid":"12"}`},
		// Hosts.
		{"Jan  1 00:00:00 " + host + " x", "x", `"attrs":{"facility":"user","host":"` + host + `"}`},
		{"Jan  1 00:00:00 " + host + "h x", host + "h x", `"attrs":{"facility":"user","peer":"192.0.2.7"}`},
		{"Jan  1 00:00:00 a-b_c.D:9 x", "x", `"attrs":{"facility":"user","host":"a-b_c.D:9"}`},
		{"Jan  1 00:00:00 {h} x", "{h} x", `"attrs":{"facility":"user","peer":"192.0.2.7"}`},
		// RFC 5424.
		{"1 soon h - - - - x", "", ""},
		{"2 - h - - - - x", "", ""},
		{"1- h - - - - x", "", ""},
		{"1 -  - - - - x", "", ""},
		{`1 - h - - - [a b="c" x`, `[a b="c" x`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a b=c] x`, `[a b=c] x`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a b] x`, `[a b] x`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a b:"c"] x`, `[a b:"c"] x`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a ="c"] x`, `[a ="c"] x`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [] x`, `[] x`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a b=`, `[a b=`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a`, `[a`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a b="c"`, `[a b="c"`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - [a b="c" ] x`, `x`, `"attrs":{"facility":"user","host":"h","a":{"b":"c"}}`},
		{`1 - h - - - [a b="c\`, `[a b="c\`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - - -x`, `-x`, `"attrs":{"facility":"user","host":"h"}`},
		{`1 - h - - -`, ``, `"attrs":{"facility":"user","host":"h"}`},
	} {
		text, attrs := c.text, c.attrs
		if attrs == "" {
			text, attrs = c.message, `"attrs":{"facility":"user","peer":"192.0.2.7"}`
		}
		chunk := newChunk("<14>" + c.message)
		Protocol{Zone: time.UTC}.DecodePacket(chunk)
		_, got, _ := strings.Cut(string(chunk.Batch.Lines), `"level":"INFO",`)
		quoted, _ := json.Marshal(text)
		want := `"msg":` + string(quoted) + "," + attrs + "}\n"
		if text == "" {
			want = attrs + "}\n"
		}
		if got != want {
			t.Errorf("%s\ngot  %swant %s", c.message, got, want)
		}
	}
}
