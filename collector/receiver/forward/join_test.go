package forward

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// TestJoined sends records in the three ways in which entries follow each other: those that
// only continue the one before, and parts of a line, are one event.
func TestJoined(t *testing.T) {
	const head = `{"time":"2025-06-15T12:00:00.000000000Z","level":`
	of := func(text string, more ...string) string {
		return dict(append([]string{str("source"), str("stderr"), str("log"), str(text)}, more...)...)
	}
	turned := dict(str("log"), str("Caused by: x"), str("source"), str("stderr"))
	part := func(text, id, n, last string) string {
		return of(text, str("partial_message"), str("true"), str("partial_id"), str(id), str("partial_ordinal"), str(n), str("partial_last"), str(last))
	}
	for _, c := range []struct {
		name    string
		records []string
		want    []string
	}{
		{"a stack trace", []string{of("ERROR: it failed"), of("\tat a.B(C.java:7)"), turned, of("done")},
			[]string{`"ERROR","msg":"ERROR: it failed\n\tat a.B(C.java:7)\nCaused by: x","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","msg":"done","attrs":{"tag":"t","source":"stderr"}}`}},
		{"its header", []string{of("ERROR: it failed\n"), of("java.io.IOException: x\n"), of("\tat a.B(C.java:7)\n")},
			[]string{`"ERROR","msg":"ERROR: it failed\njava.io.IOException: x\n\tat a.B(C.java:7)\n","error":{"type":"java.io.IOException","message":"x"},"attrs":{"tag":"t","source":"stderr","error.fingerprint":"1-7db94f8aa0fb6587"}}`}},
		{"another stream", []string{of("it failed"), dict(str("source"), str("stdout"), str("log"), str(" x")), dict(str("log"), str(" y"))},
			[]string{`"INFO","msg":"it failed","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","msg":" x","attrs":{"tag":"t","source":"stdout"}}`, `"INFO","msg":" y","attrs":{"tag":"t"}}`}},
		{"other members", []string{of("it failed"), of(" x", str("a"), "\x01"), of(" y", str("a"), "\x02"), of(" z", str("a"), "\x02")},
			[]string{`"INFO","msg":"it failed","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","msg":" x","attrs":{"tag":"t","source":"stderr","a":1}}`, `"INFO","msg":" y\n z","attrs":{"tag":"t","source":"stderr","a":2}}`}},
		{"an offset of its own", []string{of("it failed", str("offset"), "\x01"), of(" x", str("offset"), "\x02")},
			[]string{`"INFO","msg":"it failed\n x","attrs":{"tag":"t","source":"stderr","offset":1}}`}},
		{"no texts", []string{of("it failed"), dict(str("log"), "\x07", str("source"), str("stderr")), dict(str("source"), str("stderr"), str("x"), str(" y")), "\xa2 z"},
			[]string{`"INFO","msg":"it failed","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","msg":"7","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","attrs":{"tag":"t","source":"stderr","x":" y"}}`, `"INFO","msg":" z","attrs":{"tag":"t"}}`}},
		{"parts", []string{part(`{"level":"error",`, "a", "1", "false"), part(`"msg":`, "a", "2", "false"), part(`"x"}`, "a", "3", "true"), of("done")},
			[]string{`"ERROR","msg":"x","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","msg":"done","attrs":{"tag":"t","source":"stderr"}}`}},
		{"parts of before Docker 19.03", []string{of("a", str("partial_message"), str("true")), of("b", str("partial_message"), str("true")), of("c"), of("d")},
			[]string{`"INFO","msg":"abc","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","msg":"d","attrs":{"tag":"t","source":"stderr"}}`}},
		{"parts by a parser of CRI", []string{of("a", str("logtag"), str("P")), of("b", str("logtag"), str("F")), of("c", str("logtag"), str("F"))},
			[]string{`"INFO","msg":"ab","attrs":{"tag":"t","source":"stderr"}}`, `"INFO","msg":"c","attrs":{"tag":"t","source":"stderr","logtag":"F"}}`}},
		{"lines of CRI", []string{of("2025-06-15T12:00:00Z stderr P a"), of("2025-06-15T12:00:00Z stderr F b"), of("2025-06-15T12:00:00Z stderr F  c")},
			[]string{`"INFO","msg":"2025-06-15T12:00:00Z stderr F ab\n c","attrs":{"tag":"t","source":"stderr"}}`}},
		{"parts of two lines", []string{part("a", "a", "1", "false"), part("b", "b", "1", "false"), part("c", "b", "2", "true")},
			[]string{`"INFO","msg":"a","attrs":{"tag":"t","source":"stderr","partial_message":"true","partial_id":"a","partial_ordinal":"1","partial_last":"false"}}`, `"INFO","msg":"bc","attrs":{"tag":"t","source":"stderr"}}`}},
		{"parts without an end", []string{part("a", "a", "1", "false"), part("b", "a", "2", "false")},
			[]string{`"INFO","msg":"ab","attrs":{"tag":"t","source":"stderr","partial_message":"true","partial_id":"a","partial_ordinal":"1","partial_last":"false"}}`}},
	} {
		var list, messages, acked []string
		at := num(1749988800)
		for _, r := range c.records {
			list = append(list, arr(at, r))
			messages = append(messages, arr(str("t"), at, r))
			acked = append(acked, arr(str("t"), at, r, chunk))
		}
		for way, sent := range map[string]string{
			"Forward":       arr(str("t"), arr(list...)),
			"PackedForward": arr(str("t"), bin(strings.Join(list, "")), chunk),
			"Message":       strings.Join(messages, ""),
		} {
			got, left, err := decode(t, normalize.Limits{}, sent)
			lines := strings.Split(strings.TrimSuffix(string(got.Batch.Lines), "\n"), "\n")
			if err != nil || len(left) > 0 || len(lines) != len(c.want) {
				t.Errorf("%s, %s: %v, %q is left\n%s", c.name, way, err, left, got.Batch.Lines)
				continue
			}
			for i, want := range c.want {
				if lines[i] != head+want {
					t.Errorf("%s, %s:\n got %s\nwant %s", c.name, way, lines[i], head+want)
				}
			}
			if apart, _, _ := decode(t, normalize.Limits{Text: normalize.Text{Apart: true}}, sent); apart.Batch.Records < len(c.want) {
				t.Errorf("%s, %s, apart: %s", c.name, way, apart.Batch.Lines)
			}
		}
		if got, left, err := decode(t, normalize.Limits{}, strings.Join(acked, "")); err != nil || len(left) > 0 || got.Batch.Records != len(c.records) {
			t.Errorf("%s, acknowledged: %v, %q is left\n%s", c.name, err, left, got.Batch.Lines)
		}
	}
}

// Parts of a line are waited for, as long as there is room and more may come; a part of another
// tag is not theirs.
func TestPartsThatCome(t *testing.T) {
	part := func(tag, text, last string) string {
		return arr(str(tag), num(1749988800), dict(str("log"), str(text), str("partial_message"), str("true"), str("partial_id"), str("a"), str("partial_last"), str(last)))
	}
	c, session := newChunk("", normalize.Limits{}), Protocol{}.Open()
	for _, step := range []struct {
		data string
		end  bool
		n    int
	}{
		{part("t", "a", "false"), false, 0},
		{part("t", "a", "false") + part("t", "b", "true")[:20], false, 0},
		{part("t", "a", "false"), true, len(part("t", "a", "false"))},
		{part("t", "a", "false") + part("u", "b", "true"), false, len(part("t", "a", "false") + part("u", "b", "true"))},
		{part("t", "a", "false") + part("t", "b", "true"), false, len(part("t", "a", "false") + part("t", "b", "true"))},
	} {
		c.Data, c.End = []byte(step.data), step.end
		if n, err := session.Decode(c); n != step.n || err != nil {
			t.Errorf("%q: %d taken of %d, %v", step.data, n, len(step.data), err)
		}
	}
	if c.Batch.Records != 4 || !strings.HasSuffix(string(c.Batch.Lines), `"msg":"ab","attrs":{"tag":"t"}}`+"\n") {
		t.Errorf("%s", c.Batch.Lines)
	}
}

// A joined event that is rejected is kept in one, and read again from that.
func TestRereadJoined(t *testing.T) {
	list := arr(arr(num(1749988800), dict(str("a"), "\x01", str("log"), str("it failed"), str("b"), "\x02")), arr(num(1749988800), dict(str("a"), "\x01", str("log"), str(" because"), str("b"), "\x02")))
	c := newChunk(arr(str("t"), list), normalize.Limits{MaxFields: 2})
	c.Batch.KeepDeadLetters(1 << 20)
	if _, err := (Protocol{}).Open().Decode(c); err != nil || c.Batch.RejectedTotal != 1 {
		t.Fatal(err, c.Batch.Rejected)
	}
	letter := c.Batch.DeadLetters()[0]
	sent := []byte(c.Batch.Text(&letter))
	again := &receiver.Chunk{Data: sent, Received: received, Peer: netip.AddrPort{}, Norm: normalize.New(normalize.Limits{MaxPast: -1}), Batch: new(normalize.Batch)}
	if err := Reread(again, []byte("t")); err != nil || !strings.HasSuffix(string(again.Batch.Lines), `"msg":"it failed\n because","attrs":{"tag":"t","a":1,"b":2}}`+"\n") {
		t.Errorf("%v, %s", err, again.Batch.Lines)
	}
}
