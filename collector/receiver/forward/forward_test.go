package forward

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// Writers of MessagePack.

func str(s string) string {
	if len(s) < 32 {
		return string([]byte{0xa0 | byte(len(s))}) + s
	}
	return "\xdb" + be32(len(s)) + s
}

func be32(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }

func be64(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

func arr(items ...string) string {
	return "\xdd" + be32(len(items)) + strings.Join(items, "")
}

func dict(items ...string) string {
	return string([]byte{0x80 | byte(len(items)/2)}) + strings.Join(items, "")
}

func bin(s string) string { return "\xc6" + be32(len(s)) + s }

func num(n uint32) string { return "\xce" + be32(int(n)) }

func at(sec, nsec uint32) string { return "\xd7\x00" + be32(int(sec)) + be32(int(nsec)) }

func packed(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

func zstdOf(s string) string {
	z, _ := zstd.NewWriter(nil)
	defer z.Close()
	return string(z.EncodeAll([]byte(s), nil))
}

var (
	received = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hello    = dict(str("log"), str("hello"))
	chunk    = dict(str("chunk"), str("c1"))
)

func newChunk(data string, limits normalize.Limits) *receiver.Chunk {
	limits.MaxPast, limits.MaxFuture = -1, -1
	return &receiver.Chunk{Data: []byte(data), Received: received, Norm: normalize.New(limits), Batch: new(normalize.Batch)}
}

// decode gives a session what pieces hold as a connection does. left is what
// it has not taken.
func decode(t testing.TB, limits normalize.Limits, pieces ...string) (c *receiver.Chunk, left []byte, err error) {
	t.Helper()
	c = newChunk("", limits)
	c.Holds = true
	session := Protocol{MaxUnpacked: 1 << 20}.Open()
	for _, piece := range append(pieces, "") {
		left = append(left, piece...)
		c.Data, c.End = left, piece == ""
		n, err := session.Decode(c)
		left = left[n:]
		if err != nil {
			return c, left, err
		}
	}
	return c, left, nil
}

func TestMessages(t *testing.T) {
	const (
		now    = `{"time":"2026-01-01T00:00:00.000000000Z","level":"INFO",`
		stored = `{"time":"2025-06-15T12:00:00.000000000Z","level":"INFO","msg":"hello","attrs":{"tag":"app.x"}}` + "\n"
	)
	tag, then := str("app.x"), num(1749988800)
	other := strings.Replace(stored, "hello", "two", 1)
	two := dict(str("log"), str("two"))
	for _, c := range []struct{ name, message, want, reply string }{
		{"Message", arr(tag, then, hello), stored, ""},
		{"Message with chunk", arr(tag, then, hello, chunk), stored, "\x81\xa3ack\xa2c1"},
		{"EventTime", arr(tag, at(1749988800, 123456789), hello), strings.Replace(stored, ".000000000", ".123456789", 1), ""},
		{"EventTime as ext 8", arr(tag, "\xc7\x08\x00"+be32(1749988800)+be32(5), hello), strings.Replace(stored, ".000000000", ".000000005", 1), ""},
		{"time as float", arr(tag, "\xcb"+string(binary.BigEndian.AppendUint64(nil, math.Float64bits(1749988800.5))), hello), strings.Replace(stored, ".000000000", ".500000000", 1), ""},
		{"time with metadata", arr(tag, arr(arr(arr(then, "\x80"), hello))), stored, ""},
		{"metadata", arr(tag, arr(arr(arr(then, dict(str("a"), "\x01")), hello))), strings.Replace(stored, `"app.x"`, `"app.x","metadata":{"a":1}`, 1), ""},
		{"a tag that is binary", arr("\xc4\x05app.x", then, hello), stored, ""},
		{"not an option", arr(tag, then, hello, "\x01"), stored, ""},
		{"options of all kinds", arr(tag, then, hello, dict(arr("\x01", "\x02"), str("x"), str("list"), arr("\x01", dict("\x01", "\x02")), str("chunk"), str("c1"))), stored, "\x81\xa3ack\xa2c1"},
		{"a chunk that is binary", arr(tag, then, hello, dict(str("chunk"), "\xc4\x02c1")), stored, "\x81\xa3ack\xc4\x02c1"},
		{"a chunk that is a number", arr(tag, then, hello, dict(str("chunk"), "\x07")), stored, ""},
		{"nothing in it, compressed", arr(tag, bin(""), dict(str("compressed"), str("gzip"), str("chunk"), str("c1"))), "", "\x81\xa3ack\xa2c1"},
		{"the last time", arr(tag, "\xcf"+be64(253402300799), hello), strings.Replace(stored, "2025-06-15T12:00:00", "9999-12-31T23:59:59", 1), ""},
		{"a time after the last", arr(tag, "\xcf"+be64(253402300800), hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"a float after the last", arr(tag, "\xcb"+be64(math.Float64bits(253402300800)), hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"a time before 1970", arr(tag, "\xff", hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"a float before 1970", arr(tag, "\xcb"+be64(math.Float64bits(-1.5)), hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"an extension that is no time", arr(tag, "\xd7\x01"+be64(1749988800<<32), hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"half an EventTime", arr(tag, "\xd6\x00"+be32(1749988800), hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"a time of 0", arr(tag, "\x00", hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"no time", arr(tag, "\xc0", hello), now + `"msg":"hello","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"Forward", arr(tag, arr(arr(then, hello), arr(then, two)), chunk), stored + other, "\x81\xa3ack\xa2c1"},
		{"Forward without option", arr(tag, arr(arr(then, hello), arr(then, two))), stored + other, ""},
		{"PackedForward", arr(tag, bin(arr(then, hello)+arr(then, two)), dict(str("size"), "\x02", str("chunk"), str("c1"))), stored + other, "\x81\xa3ack\xa2c1"},
		{"PackedForward in a string", arr(tag, str(arr(then, hello)+arr(then, two))), stored + other, ""},
		{"compressed", arr(tag, bin(packed(arr(then, hello)+arr(then, two))), dict(str("compressed"), str("gzip"), str("chunk"), str("c1"))), stored + other, "\x81\xa3ack\xa2c1"},
		{"compressed in two members", arr(tag, bin(packed(arr(then, hello))+packed(arr(then, two))), dict(str("compressed"), str("gzip"))), stored + other, ""},
		{"compressed by zstd", arr(tag, bin(zstdOf(arr(then, hello)+arr(then, two))), dict(str("compressed"), str("zstd"), str("chunk"), str("c1"))), stored + other, "\x81\xa3ack\xa2c1"},
		{"compressed by zstd in two frames", arr(tag, bin(zstdOf(arr(then, hello))+zstdOf(arr(then, two))), dict(str("compressed"), str("zstd"))), stored + other, ""},
		{"compressed by nothing", arr(tag, bin(arr(then, hello)), dict(str("compressed"), str(""))), stored, ""},
		{"compressed by name only", arr(tag, bin(arr(then, hello)), dict(str("compressed"), str("text"))), stored, ""},
		{"nothing in it", arr(tag, bin(""), chunk), "", "\x81\xa3ack\xa2c1"},
		{"several and heartbeats", "\xc0" + arr(tag, then, hello) + "\xc0" + arr(tag, then, two, chunk), stored + other, "\x81\xa3ack\xa2c1"},
		{"a record that is text", arr(tag, then, str("hello"), chunk), stored, "\x81\xa3ack\xa2c1"},
		{"a record that is binary", arr(tag, arr(arr(then, "\xc4\x05hello"))), stored, ""},
		{"a Latin-1 byte", arr(tag, then, dict(str("log"), "\xc4\x05caf\xe9s")), strings.Replace(stored, "hello", "caf\ufffds", 1), ""},
		{"bytes that are no text", arr(tag, then, dict(str("id"), "\xc4\x05\xe9\x80\xff\xfe\x90")), strings.Replace(stored, `"msg":"hello","attrs":{"tag":"app.x"`, `"attrs":{"tag":"app.x","id":"6YD//pA="`, 1), ""},
		{"JSON", `["app.x",1749988800,{"log":"hello"}]`, stored, ""},
		{"JSON with chunk", ` ["app.x", 1749988800, {"log":"hello"}, {"chunk":"a\/b"}]` + "\r\n" + `["app.x",1749988800,{"log":"two"}]`, stored + other, `{"ack":"a\/b"}`},
		{"JSON, several entries", `["app.x",[[1749988800,{"log":"hello"}],[1749988800,"two"]],{"chunk":"c1"}]`, stored + other, `{"ack":"c1"}`},
		{"JSON, then MessagePack", `["app.x",1749988800.0,{"log":"hello"},{}]` + arr(tag, then, two, chunk), stored + other, "\x81\xa3ack\xa2c1"},
		{"JSON without time", `["app.x",0,{"log":"[\"]\\\\"}]`, now + `"msg":"[\"]\\\\","attrs":{"tag":"app.x"}}` + "\n", ""},
		{"JSON in Latin-1", "[\"app.x\",1749988800,{\"log\":\"h\xe9llo\"}]", strings.Replace(stored, "hello", "h\uFFFDllo", 1), ""},
		{"JSON of nothing", `["app.x",[]]`, "", ""},
		{"known keys", arr(tag, then, dict(str("level"), str("warn"), str("msg"), str("m"), str("trace_id"), str("t"), str("time"), str("x"), str("tag"), str("y"), str("attrs"), dict(str("a"), "\x01"))),
			`{"time":"2025-06-15T12:00:00.000000000Z","level":"WARN","msg":"m","trace_id":"t","attrs":{"tag":"app.x","time":"x","tag_2":"y","a":1}}` + "\n", ""},
		{"values", arr(tag, then, dict(
			str("nil"), "\xc0", str("no"), "\xc2", str("yes"), "\xc3", str("i8"), "\xd0\x80", str("i64"), "\xd3\x80\x00\x00\x00\x00\x00\x00\x00",
			str("u64"), "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", str("neg"), "\xff", str("f32"), "\xca\x3f\xc0\x00\x00",
			str("bin"), "\xc4\x02\x00\xff", str("text"), "\xc4\x02hi", str("ext"), "\xd4\x05\x01", str("then"), at(0, 5),
			str("list"), "\x92\x01\x90", "\x07", dict("\xc3", str("x")), dict(), "\x01")),
			`{"time":"2025-06-15T12:00:00.000000000Z","level":"INFO","attrs":{"tag":"app.x","nil":null,"no":false,"yes":true,"i8":-128,"i64":-9223372036854775808,` +
				`"u64":18446744073709551615,"neg":-1,"f32":1.5,"bin":"AP8=","ext":{"type":5,"data":"AQ=="},"then":"1970-01-01T00:00:00.000000005Z",` +
				`"list":[1,[]],"7":{"true":"x"},"?":1,"text":"hi"}}` + "\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} {
				var pieces []string
				for at := 0; at < len(c.message); at += size {
					pieces = append(pieces, c.message[at:min(len(c.message), at+size)])
				}
				got, left, err := decode(t, normalize.Limits{}, pieces...)
				if err != nil || len(left) > 0 {
					t.Fatalf("%v, %q is left", err, left)
				}
				if string(got.Batch.Lines) != c.want || string(got.Reply) != c.reply {
					t.Errorf("got  %s%q\nwant %s%q", got.Batch.Lines, got.Reply, c.want, c.reply)
				}
			}
		})
	}
}

// TestRejected checks that what cannot be an event is counted and acknowledged.
func TestRejected(t *testing.T) {
	tag := str("t")
	deep := strings.Repeat("\x91", 100) + "\x01"
	for _, c := range []struct {
		name, message, reason string
		stored, rejected      int
	}{
		{"record is no map", arr(tag, num(1), "\x07", chunk), normalize.ReasonNotObject, 0, 1},
		{"entry is no array", arr(tag, arr("\x01", arr(num(1), hello)), chunk), normalize.ReasonNotObject, 1, 1},
		{"entry of three", arr(tag, arr(arr(num(1), hello, "\x01"), arr(num(1), hello)), chunk), normalize.ReasonNotObject, 1, 1},
		{"too deep", arr(tag, arr(arr(num(1), dict(str("a"), deep, str("b"), "\x01")), arr(num(1), hello)), chunk), normalize.ReasonTooDeep, 1, 1},
		{"too deep in maps", arr(tag, arr(arr(num(1), strings.Repeat("\x81\x01", 100)+"\x01"), arr(num(1), hello)), chunk), normalize.ReasonTooDeep, 1, 1},
		{"too large", arr(tag, arr(arr(num(1), dict(str("a"), str(strings.Repeat("x", 3000)))), arr(num(1), hello)), chunk), normalize.ReasonTooLarge, 1, 1},
		{"packed and cut", arr(tag, bin(arr(num(1), hello)+arr(num(1), hello)[:9]), chunk), normalize.ReasonSyntax, 1, 1},
		{"packed garbage", arr(tag, bin(arr(num(1), hello)+"\xc1"), chunk), normalize.ReasonSyntax, 1, 1},
		{"too many events", arr(tag, bin(strings.Repeat(arr(num(1), hello), 12)), chunk), normalize.ReasonTooManyEvents, 10, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, left, err := decode(t, normalize.Limits{MaxEventBytes: 2000, MaxEvents: 10}, c.message)
			if err != nil || len(left) > 0 || string(got.Reply) != "\x81\xa3ack\xa2c1" {
				t.Fatalf("%v, %q is left, answered %q", err, left, got.Reply)
			}
			if b := got.Batch; b.Records != c.stored || b.RejectedTotal != c.rejected || b.RejectedFor(c.reason) != c.rejected {
				t.Errorf("%d stored, %+v", b.Records, b.Rejected)
			}
		})
	}
}

// TestNoMessage checks that what is no message closes the connection, after
// what came before it, without an acknowledgement.
func TestNoMessage(t *testing.T) {
	tag := str("t")
	for name, message := range map[string]string{
		"JSON without record": `["tag",1]`,
		"JSON, packed":        `["tag","packed"]`,
		"an object of JSON":   `{"tag":"t"}`,
		"no JSON":             `["tag",1,{"a":b}]`,
		"HTTP":                "GET / HTTP/1.1\r\n\r\n",
		"an array of one":     arr(tag),
		"an array of five":    arr(tag, "\x01", hello, chunk, "\x01"),
		"not a tag":           arr("\x01", "\x01", hello),
		"no record":           arr(tag, "\x01"),
		"an invalid byte":     "\x93\xc1",
		"nested far":          strings.Repeat("\x91", 2000),
		"not gzip":            arr(tag, bin("hello"), dict(str("chunk"), str("c"), str("compressed"), str("gzip"))),
		"gzip, cut in a name": arr(tag, bin(packed(arr("\x01", hello))+"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xffname"), dict(str("chunk"), str("c"), str("compressed"), str("gzip"))),
		"not zstd":            arr(tag, bin("hello"), dict(str("chunk"), str("c"), str("compressed"), str("zstd"))),
		"half zstd":           arr(tag, bin(zstdOf(arr("\x01", hello))[:12]), dict(str("chunk"), str("c"), str("compressed"), str("zstd"))),
		"packed by who knows": arr(tag, bin(arr("\x01", hello)), dict(str("chunk"), str("c"), str("compressed"), str("lz4"))),
		"half gzip":           arr(tag, bin(packed(arr("\x01", hello))[:20]), dict(str("chunk"), str("c"), str("compressed"), str("gzip"))),
	} {
		got, _, err := decode(t, normalize.Limits{}, arr(tag, num(1), hello, chunk)+message)
		if err == nil || got.Batch.Records != 1 || got.Batch.RejectedFor(normalize.ReasonSyntax) != 1 || string(got.Reply) != "\x81\xa3ack\xa2c1" {
			t.Errorf("%s: %v, %d stored, %+v, answered %q", name, err, got.Batch.Records, got.Batch.Rejected, got.Reply)
		}
	}
}

func TestBomb(t *testing.T) {
	zeros := strings.Repeat("\x00", 2<<20)
	for how, entries := range map[string]string{"gzip": packed(zeros), "zstd": zstdOf(zeros)} {
		bomb := arr(str("t"), bin(entries), dict(str("compressed"), str(how), str("chunk"), str("c")))
		got, _, err := decode(t, normalize.Limits{}, bomb)
		if err == nil || got.Batch.RejectedFor(normalize.ReasonTooLarge) != 1 || len(got.Reply) > 0 {
			t.Errorf("%s: %v, %+v, answered %q", how, err, got.Batch.Rejected, got.Reply)
		}
	}
}

// TestCut cuts a message anywhere: nothing of it is stored.
func TestCut(t *testing.T) {
	message := arr(str("t"), arr(arr(at(1, 2), hello), arr(num(1), hello)), chunk)
	for n := range len(message) {
		got, left, err := decode(t, normalize.Limits{}, message[:n])
		if err != nil || len(left) != n || got.Batch.Records+got.Batch.RejectedTotal > 0 || len(got.Reply) > 0 {
			t.Fatalf("cut at %d: %v, %d left, %+v", n, err, len(left), got.Batch)
		}
	}
}

// What is wrong with one entry, in whatever part of it, leaves the entries behind
// it as they are.
func TestEntriesBehindBrokenOnes(t *testing.T) {
	good := arr(num(1749988800), hello)
	for name, broken := range map[string]string{
		"three parts":        arr(num(1), hello, dict(str("a"), arr(num(2)))),
		"one part":           arr(num(1)),
		"a record of arrays": arr(num(1), arr(arr(num(2), hello), num(3))),
		"an entry of a map":  dict(str("a"), arr(num(1), hello)),
	} {
		for mode, message := range map[string]string{
			"Forward":       arr(str("t"), arr(broken, good, broken, good), chunk),
			"PackedForward": arr(str("t"), bin(broken+good+broken+good), chunk),
		} {
			c, left, err := decode(t, normalize.Limits{}, message)
			if err != nil || len(left) > 0 || c.Batch.Records != 2 || c.Batch.RejectedTotal != 2 || strings.Count(string(c.Batch.Lines), `"msg":"hello","attrs":{"tag":"t"}`) != 2 {
				t.Errorf("%s, %s: %d stored, %d rejected, %d bytes left, %v\n%s", mode, name, c.Batch.Records, c.Batch.RejectedTotal, len(left), err, c.Batch.Lines)
			}
		}
	}
	// A time that is not valid is left out, with all that is in it.
	c, _, err := decode(t, normalize.Limits{}, arr(str("t"), arr(arr(dict(str("a"), arr(num(1))), hello), good)))
	if err != nil || c.Batch.Records != 2 || c.Batch.RejectedTotal != 0 {
		t.Errorf("%d stored, %d rejected, %v\n%s", c.Batch.Records, c.Batch.RejectedTotal, err, c.Batch.Lines)
	}
}

// How much a message unpacks to is bounded from 4 MiB on, by its size as sent: one
// that says little is refused, one that says much is taken.
func TestRatio(t *testing.T) {
	source := rand.NewChaCha8([32]byte{1})
	line := func(int) string {
		text := make([]byte, 10_000)
		source.Read(text)
		return arr(num(1749988800), dict(str("log"), str(hex.EncodeToString(text))))
	}
	same := arr(num(1749988800), hello)
	for name, tt := range map[string]struct {
		line func(int) string
		ok   bool
	}{"the same again and again": {func(int) string { return same }, false}, "what gzip makes a half of": {line, true}} {
		var entries strings.Builder
		for i := 0; entries.Len() < 5<<20; i++ {
			entries.WriteString(tt.line(i))
		}
		c := &receiver.Chunk{Received: received, Norm: normalize.New(normalize.Limits{MaxPast: -1}), Batch: new(normalize.Batch)}
		c.Data = []byte(arr(str("t"), bin(packed(entries.String())), dict(str("compressed"), str("gzip"))))
		_, err := Protocol{}.Open().Decode(c)
		if (err == nil) != tt.ok || tt.ok == (c.Batch.Records == 0) || c.Batch.RejectedTotal != map[bool]int{false: 1}[tt.ok] {
			t.Errorf("%s: %d stored, %d rejected, %v", name, c.Batch.Records, c.Batch.RejectedTotal, err)
		}
	}
}

// An EventTime with more nanoseconds than a second has is not valid.
func TestEventTimeThatIsNone(t *testing.T) {
	c, _, err := decode(t, normalize.Limits{}, arr(str("t"), at(1749988800, 1e9), hello))
	if want := `{"time":"2026-01-01T00:00:00.000000000Z",`; err != nil || !strings.HasPrefix(string(c.Batch.Lines), want) {
		t.Errorf("%v: %s", err, c.Batch.Lines)
	}
}
