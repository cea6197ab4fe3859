package lumberjack

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

func be32(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }

func windowOf(n int) string { return "2W" + be32(n) }

func ackOf(n int) string { return "2A" + be32(n) }

// events are frames of events, numbered from 1.
func events(texts ...string) (frames string) {
	for i, text := range texts {
		frames += "2J" + be32(i+1) + be32(len(text)) + text
	}
	return frames
}

func pack(frames string) string {
	var b bytes.Buffer
	z, _ := zlib.NewWriterLevel(&b, zlib.HuffmanOnly) // the least work
	z.Write([]byte(frames))                           // to memory
	z.Close()
	return "2C" + be32(b.Len()) + b.String()
}

var received = time.Unix(1779972000, 0)

// send sends text over a connection, cut at each of cuts.
func send(t testing.TB, p Protocol, text string, cuts ...int) (c *receiver.Chunk, left []byte, err error) {
	t.Helper()
	return sendWith(t, p, normalize.Text{}, text, cuts...)
}

func sendWith(t testing.TB, p Protocol, how normalize.Text, text string, cuts ...int) (c *receiver.Chunk, left []byte, err error) {
	t.Helper()
	c = &receiver.Chunk{Received: received, Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1, Text: how}), Batch: new(normalize.Batch)}
	left, err = decodetest.Pieces(p.Open(), c, text, cuts...)
	return c, left, err
}

func lines(b *normalize.Batch) string { return string(b.AppendTo(nil)) }

const stamp = `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":`

// beat is what Filebeat 8 sends.
const beat = `{"@timestamp":"2026-05-28T12:40:00.123Z","@metadata":{"beat":"filebeat","type":"_doc","version":"8.17.0"},"message":"disk full","log":{"offset":0,"file":{"path":"/var/log/app.log"}},"input":{"type":"filestream"},"ecs":{"version":"8.0.0"},"host":{"name":"web-1"},"agent":{"type":"filebeat","version":"8.17.0","name":"web-1"}}`

const beatLine = `{"time":"2026-05-28T12:40:00.123000000Z","level":"INFO","msg":"disk full","attrs":{"@metadata":{"beat":"filebeat","type":"_doc","version":"8.17.0"},` +
	`"input":{"type":"filestream"},"ecs":{"version":"8.0.0"},"agent":{"type":"filebeat","version":"8.17.0","name":"web-1"},"log":{"offset":0,"file":{"path":"/var/log/app.log"}},"host":"web-1"}}` + "\n"

func TestFrames(t *testing.T) {
	one, two := events(`{"msg":"one"}`), stamp+`"one"}`+"\n"+stamp+`"two"}`+"\n"
	both := events(`{"msg":"one"}`, `{"msg":"two"}`)
	for _, tt := range []struct{ name, frames, want, reply, rejected string }{
		{"a window", windowOf(2) + both, two, ackOf(2), ""},
		{"packed", windowOf(2) + pack(both), two, ackOf(2), ""},
		{"packed in two", windowOf(2) + pack(one) + pack("2J"+be32(2)+be32(13)+`{"msg":"two"}`), two, ackOf(2), ""},
		{"packed with its window", pack(windowOf(2) + both), two, ackOf(2), ""},
		{"windows", windowOf(1) + one + windowOf(2) + both, stamp + `"one"}` + "\n" + two, ackOf(1) + ackOf(2), ""},
		{"half a window", windowOf(5) + both, two, ackOf(2), ""},
		{"no window", both, two, ackOf(1) + ackOf(2), ""},
		{"an empty window", windowOf(0) + windowOf(1) + one, stamp + `"one"}` + "\n", ackOf(1), ""},
		{"numbers that go on", windowOf(1) + "2J" + be32(700) + be32(13) + `{"msg":"one"}`, stamp + `"one"}` + "\n", ackOf(700), ""},
		{"an event of a Beat", windowOf(1) + events(beat), beatLine, ackOf(1), ""},
		{"a level of ECS", windowOf(1) + events(`{"message":"m","log":{"level":"error"},"service":{"name":"shop"}}`), `{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"m","service":"shop"}` + "\n", ackOf(1), ""},
		{"events that are none", windowOf(4) + events(`7`, `{"msg":`, "{\"msg\":\"\xff\"}", `{"msg":"one"}`), stamp + "\"\uFFFD\"}\n" + stamp + `"one"}` + "\n", ackOf(4), "not_object syntax"},
		{"nothing in it", windowOf(1) + events(""), "", ackOf(1), ""},
		{"too long", windowOf(2) + events(`{"msg":"`+strings.Repeat("x", 2000)+`"}`, `{"msg":"one"}`), stamp + `"one"}` + "\n", ackOf(2), "too_large"},
		{"too long and packed", windowOf(2) + pack(events(`{"msg":"`+strings.Repeat("x", 2000)+`"}`, `{"msg":"one"}`)), stamp + `"one"}` + "\n", ackOf(2), "too_large"},
		{"lines that continue", windowOf(3) + pack(events(beat, strings.Replace(strings.Replace(beat, "disk full", `\tat a.B(C.java:7)`, 1), `"offset":0`, `"offset":10`, 1), `{"msg":"one"}`)), strings.Replace(beatLine, "disk full", `disk full\n\tat a.B(C.java:7)`, 1) + stamp + `"one"}` + "\n", ackOf(3), ""},
		{"one that would without its level", windowOf(2) + events(`{"message":"a"}`, `{"message":" b","level":"info"}`), stamp + `"a"}` + "\n" + stamp + `" b"}` + "\n", ackOf(2), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for step := range 3 {
				var cuts []int
				for at := 0; step > 0 && at < len(tt.frames); at += step {
					cuts = append(cuts, at)
				}
				c, left, err := send(t, Protocol{MaxEvent: 1000}, tt.frames, cuts...)
				var rejected []string
				for _, r := range c.Batch.Rejected {
					rejected = append(rejected, r.Reason)
				}
				if got := lines(c.Batch); err != nil || len(left) > 0 || got != tt.want || strings.Join(rejected, " ") != tt.rejected {
					t.Errorf("in pieces of %d: %v, %q is left, %+v\ngot  %swant %s", step, err, left, c.Batch.Rejected, got, tt.want)
				}
				if step == 0 && string(c.Reply) != tt.reply || !strings.HasSuffix(string(c.Reply), tt.reply[len(tt.reply)-6:]) {
					t.Errorf("in pieces of %d: answered %q, want %q", step, c.Reply, tt.reply)
				}
			}
		})
	}
}

// Bytes that are not a frame close the connection. What was before them is stored and acknowledged.
func TestFaults(t *testing.T) {
	begin := windowOf(9) + events(`{"msg":"one"}`)
	bomb := pack(strings.Repeat(events(strings.Repeat(" ", 990)), 20_000))
	for name, tt := range map[string]struct{ frames, reason, text string }{
		"version 1":             {"1W" + be32(1), "syntax", `not a frame of Lumberjack, version 2: it begins with "1W"`},
		"an unknown frame":      {"2X", "syntax", `"2X"`},
		"an answer":             {ackOf(1), "syntax", `"2A"`},
		"packed twice":          {pack(pack(events("{}"))), "syntax", `"2C"`},
		"not zlib":              {"2C" + be32(3) + "abc", "syntax", "a packed frame: not"},
		"torn within":           {pack(events("{}")[:11]), "syntax", "end within one"},
		"torn after its head":   {pack("2J" + be32(1) + be32(2000) + "{"), "syntax", "end within one"},
		"broken off":            {"2C" + be32(9) + pack(events("{}"))[6:15], "syntax", "not whole"},
		"more than it is worth": {bomb, "too_large", "unpack to more than"},
	} {
		c, left, err := send(t, Protocol{MaxEvent: 1000, MaxUnpacked: 1 << 20}, begin+tt.frames)
		n := c.Batch.RejectedTotal
		if err == nil || !strings.Contains(err.Error(), tt.text) || lines(c.Batch) != stamp+`"one"}`+"\n" || n == 0 || c.Batch.Rejected[n-1].Reason != tt.reason || string(left) != tt.frames {
			t.Errorf("%s: %v, %.50q is left, %+v, %s", name, err, left, c.Batch.Rejected, lines(c.Batch))
		}
	}
	// What the connection ends in is not taken.
	for _, frames := range []string{begin + "2", begin + "2J\x00", begin + events("{}")[:11], begin + pack(events("{}"))[:9]} {
		if c, left, err := send(t, Protocol{}, frames); err != nil || begin+string(left) != frames || c.Batch.Records != 1 || string(c.Reply) != ackOf(1) {
			t.Errorf("%q: %v, %q is left, answered %q", frames, err, left, c.Reply)
		}
	}
}

// Sizes of four bytes are more than an int of 32 bits has: run it with GOARCH=386, too.
func TestLargestSizes(t *testing.T) {
	frame := "2J" + be32(1) + "\xff\xff\xff\xff{}"
	c, left, err := send(t, Protocol{}, windowOf(1)+frame, 9, 17)
	if err != nil || len(left) > 0 || c.Batch.RejectedFor(normalize.ReasonTooLarge) != 1 || len(c.Reply) > 0 {
		t.Errorf("an event: %v, %q is left, %+v, answered %q", err, left, c.Batch.Rejected, c.Reply)
	}
	frame = "2C\xff\xff\xff\xff{}"
	if c, left, err = send(t, Protocol{}, frame); err != nil || string(left) != frame || c.Batch.Events() > 0 {
		t.Errorf("a packed frame: %v, %q is left", err, left)
	}
}

func TestNoAllocationPerEvent(t *testing.T) {
	frames := windowOf(1000) + events(slices.Repeat([]string{beat}, 1000)...)
	for name, text := range map[string]string{"as they are": frames, "packed": windowOf(1000) + pack(frames[6:])} {
		c := &receiver.Chunk{Received: received, Norm: normalize.New(normalize.Limits{}), Batch: new(normalize.Batch)}
		session, data := Protocol{}.Open(), []byte(text)
		got := testkit.Mallocs(func() {
			c.Batch.Reset()
			c.Data, c.Reply = data, c.Reply[:0]
			if n, err := session.Decode(c); n != len(data) || err != nil || c.Batch.Records != 1000 || string(c.Reply) != ackOf(1000) {
				t.Fatal(name, n, err, c.Batch.Records)
			}
		})
		if got > 0 && !pool.Poisons { // such a pool allocates
			t.Errorf("%s: %d allocations for 1000 events", name, got)
		}
	}
}

// FuzzDecode sends any bytes in two pieces, and any texts as events: as they are and packed
// they become the same lines.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(windowOf(2)+events(beat, `{"msg":"x"}`)), 30)
	f.Add([]byte(windowOf(2)+pack(events(`{}`, `7`))+windowOf(0)), 9)
	f.Add([]byte(`{"a":1}|{"b":`+"|\xff|"+strings.Repeat("long", 100)), 3)
	f.Add([]byte("2C\x00\x00\x00\x08abcdefgh2J\xff\xff\xff\xff\xff\xff\xff\xff"), 3)
	p := Protocol{MaxEvent: 300, MaxUnpacked: 1 << 20}
	apart := normalize.Text{Apart: true} // else the cuts count
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		want, rest, whole := sendWith(t, p, apart, string(data))
		got, left, err := sendWith(t, p, apart, string(data), cut)
		if (err == nil) != (whole == nil) || err == nil && !bytes.Equal(rest, left) || lines(got.Batch) != lines(want.Batch) || got.Batch.Events() != want.Batch.Events() {
			t.Fatalf("%q cut at %d: %v, %q is left, %+v\n%swhole: %v, %q is left, %+v\n%s", data, cut, err, left, got.Batch.Rejected, lines(got.Batch), whole, rest, want.Batch.Rejected, lines(want.Batch))
		}
		decodetest.CheckLines(t, got.Batch)
		texts := strings.Split(string(data), "|")
		frames := events(texts...)
		want, rest, whole = sendWith(t, p, apart, windowOf(len(texts))+frames, cut)
		got, left, err = sendWith(t, p, apart, windowOf(len(texts))+pack(frames), cut)
		sum := func(c *receiver.Chunk, left []byte, err error) string {
			return fmt.Sprintf("%s%d events, %+v, %q is left, %v, %q", lines(c.Batch), c.Batch.Events(), c.Batch.Rejected, left, err, c.Reply[len(c.Reply)-6:])
		}
		if a, b := sum(want, rest, whole), sum(got, left, err); a != b {
			t.Fatalf("%q\n%s\npacked\n%s", texts, a, b)
		}
	})
}
