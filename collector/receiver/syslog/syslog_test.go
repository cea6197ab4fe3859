package syslog

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

var (
	received = time.Date(2026, 1, 1, 0, 30, 0, 5000, time.UTC)
	peer     = netip.MustParseAddrPort("192.0.2.7:514")
)

func newChunk(data string) *receiver.Chunk {
	return &receiver.Chunk{Data: []byte(data), Received: received, Peer: peer, Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1}), Batch: new(normalize.Batch)}
}

func TestMessages(t *testing.T) {
	const now = `{"time":"2026-01-01T00:30:00.000005Z",`
	for _, c := range []struct{ name, message, want string }{
		{"RFC 5424, example 1", "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \ufeff'su root' failed for lonvick on /dev/pts/8",
			`{"time":"2003-10-11T22:14:15.003Z","level":"FATAL","msg":"'su root' failed for lonvick on /dev/pts/8","service":"su","attrs":{"facility":"auth","host":"mymachine.example.com","msgid":"ID47"}}`},
		{"RFC 5424, example 2", "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
			`{"time":"2003-08-24T12:14:15.000003Z","level":"INFO+2","msg":"%% It's time to make the do-nuts.","service":"myproc","attrs":{"facility":"local4","host":"192.0.2.1","procid":"8710"}}`},
		{"RFC 5424, example 4", `<165>1 2003-10-11T22:14:15.003Z m evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"][examplePriority@32473 class="high"]`,
			`{"time":"2003-10-11T22:14:15.003Z","level":"INFO+2","service":"evntslog","attrs":{"facility":"local4","host":"m","msgid":"ID47","exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"},"examplePriority@32473":{"class":"high"}}}`},
		{"escapes in structured data", `<14>1 - h a - - [x a="\"\\\]\n" a=""  b="é"] hi`,
			now + `"level":"INFO","msg":"hi","service":"a","attrs":{"facility":"user","host":"h","x":{"a":"\"\\]\\n","a":"","b":"é"}}}`},
		{"nothing but nil", "<0>1 - - - - - -", now + `"level":"FATAL+2","attrs":{"facility":"kern","peer":"192.0.2.7"}}`},
		{"severities", "<15>1 - h - - - - x", now + `"level":"DEBUG","msg":"x","attrs":{"facility":"user","host":"h"}}`},
		{"Log4j's thread context", `<14>1 - h a - - [mdc@32473 order="7" trace_id="5b8efff798038103d269b633813fc60c"][x a="1"] hi`,
			now + `"level":"INFO","msg":"hi","service":"a","trace_id":"5b8efff798038103d269b633813fc60c","attrs":{"facility":"user","host":"h","x":{"a":"1"},"order":"7"}}`},
		{"no structured data at all", "<14>1 - h a 1 - the text", now + `"level":"INFO","msg":"the text","service":"a","attrs":{"facility":"user","host":"h","procid":"1"}}`},
		{"broken structured data", `<14>1 - h a 1 - [x a="b] c`, now + `"level":"INFO","msg":"[x a=\"b] c","service":"a","attrs":{"facility":"user","host":"h","procid":"1"}}`},
		{"text in brackets", `<14>1 - h a 1 - [tag]text`, now + `"level":"INFO","msg":"[tag]text","service":"a","attrs":{"facility":"user","host":"h","procid":"1"}}`},
		{"not a time", "<14>1 2026-13-11T22:14:15Z h - - - - x", now + `"level":"INFO","msg":"x","attrs":{"time":"2026-13-11T22:14:15Z","facility":"user","host":"h"}}`},
		{"fields missing", "<14>1 - h", now + `"level":"INFO","msg":"1 - h","attrs":{"facility":"user","peer":"192.0.2.7"}}`},

		{"RFC 3164, example 1", "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
			`{"time":"2025-10-11T22:14:15Z","level":"FATAL","msg":"'su root' failed for lonvick on /dev/pts/8","service":"su","attrs":{"facility":"auth","host":"mymachine"}}`},
		{"last year's", "<13>Dec 31 23:59:59 h t[12]: x", `{"time":"2025-12-31T23:59:59Z","level":"INFO+2","msg":"x","service":"t","attrs":{"facility":"user","host":"h","procid":"12"}}`},
		{"a clock that is ahead", "<13>Jan  2 00:00:00 h t: x", `{"time":"2026-01-02T00:00:00Z","level":"INFO+2","msg":"x","service":"t","attrs":{"facility":"user","host":"h"}}`},
		{"29 February", "<13>Feb 29 00:00:00 h t: x", now + `"level":"INFO+2","msg":"Feb 29 00:00:00 h t: x","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"no host", "<13>Jan  1 00:00:00 logger[5]: x", `{"time":"2026-01-01T00:00:00Z","level":"INFO+2","msg":"x","service":"logger","attrs":{"facility":"user","procid":"5","peer":"192.0.2.7"}}`},
		{"no tag", "<13>Jan  1 00:00:00 h just text: here", `{"time":"2026-01-01T00:00:00Z","level":"INFO+2","msg":"just text: here","attrs":{"facility":"user","host":"h"}}`},
		{"a host with colons", "<13>Jan  1 00:00:00 fe80::1 t: x", `{"time":"2026-01-01T00:00:00Z","level":"INFO+2","msg":"x","service":"t","attrs":{"facility":"user","host":"fe80::1"}}`},
		{"not a host", "<13>Jan  1 00:00:00 (text) x", `{"time":"2026-01-01T00:00:00Z","level":"INFO+2","msg":"(text) x","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"an ISO time", "<30>2026-05-28T14:40:00.123456+02:00 box systemd[1]: Started.", `{"time":"2026-05-28T12:40:00.123456Z","level":"INFO","msg":"Started.","service":"systemd","attrs":{"facility":"daemon","host":"box","procid":"1"}}`},
		{"an ISO time with a space", "<30>2026-05-28 14:40:00.5 box t: x", `{"time":"2026-05-28T14:40:00.5Z","level":"INFO","msg":"x","service":"t","attrs":{"facility":"daemon","host":"box"}}`},
		{"a network device", "<189>*Mar  1 2025 18:46:11.040: %SYS-5-CONFIG_I: done", `{"time":"2025-03-01T18:46:11.04Z","level":"INFO+2","msg":"%SYS-5-CONFIG_I: done","attrs":{"facility":"local7","peer":"192.0.2.7"}}`},
		{"nothing but text", "<14>syslog hello\x00", now + `"level":"INFO","msg":"syslog hello","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"text with a colon", "<14>failed: disk", now + `"level":"INFO","msg":"failed: disk","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"a tag without a time", "<14>app[12]: x", now + `"level":"INFO","msg":"x","service":"app","attrs":{"facility":"user","procid":"12","peer":"192.0.2.7"}}`},
		{"no priority", "hello\r\n", now + `"level":"INFO","msg":"hello","attrs":{"peer":"192.0.2.7"}}`},
		{"a priority out of range", "<192>hello", now + `"level":"INFO","msg":"<192>hello","attrs":{"peer":"192.0.2.7"}}`},
		{"a priority only", "<14>", now + `"level":"INFO","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"a byte order mark first", "\ufeff<14>x", now + `"level":"INFO","msg":"x","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"not UTF-8", "<14>caf\xe9", now + `"level":"INFO","msg":"caf` + "�" + `","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"several lines", "<14>a\nb\n", now + `"level":"INFO","msg":"a\nb","attrs":{"facility":"user","peer":"192.0.2.7"}}`},

		{"a line of the Logger", `<11>1 2026-05-28T12:40:00.123456Z box shop 77 - - {"time":"2026-05-28T12:40:00.123456789Z","level":"WARN","msg":"m","attrs":{"n":2}}`,
			`{"time":"2026-05-28T12:40:00.123456789Z","level":"WARN","msg":"m","service":"shop","attrs":{"n":2,"time":"2026-05-28T12:40:00.123456Z","severity":"err","facility":"user","host":"box","procid":"77"}}`},
		{"JSON with a cookie", `<14>Jan  1 00:00:00 h app: @cee: {"service":"s","a":[1, 2]}`,
			`{"time":"2026-01-01T00:00:00Z","level":"INFO","service":"s","attrs":{"a":[1,2],"facility":"user","service":"app","host":"h"}}`},
		{"not quite JSON", `<14>{"a":1}}`, now + `"level":"INFO","msg":"{\"a\":1}}","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
		{"JSON with bad bytes", "<14>{\"a\":\"\xff\"}", now + `"level":"INFO","attrs":{"facility":"user","peer":"192.0.2.7","a":"` + "�" + `"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			chunk := newChunk(c.message)
			Protocol{Zone: time.UTC}.DecodePacket(chunk)
			if got := shortTime(string(chunk.Batch.Lines)); got != c.want+"\n" {
				t.Errorf("got  %swant %s", got, c.want)
			}
			if chunk.Batch.Records != 1 || chunk.Batch.RejectedTotal != 0 {
				t.Errorf("%+v", chunk.Batch)
			}
		})
	}
}

// shortTime leaves the zeros at the end of a line's time out.
func shortTime(line string) string {
	time, rest, _ := strings.Cut(line, `Z"`)
	return strings.TrimSuffix(strings.TrimRight(time, "0"), ".") + `Z"` + rest
}

func TestEmptyMessages(t *testing.T) {
	for _, message := range []string{"", "\n", "\x00", "\r\n\x00"} {
		chunk := newChunk(message)
		Protocol{}.DecodePacket(chunk)
		if chunk.Batch.Records+chunk.Batch.RejectedTotal != 0 {
			t.Errorf("%q: %s", message, chunk.Batch.Lines)
		}
	}
}

func TestZone(t *testing.T) {
	chunk := newChunk("<14>Jan  1 01:00:00 h t: x")
	Protocol{Zone: time.FixedZone("", 3600)}.DecodePacket(chunk)
	if !strings.HasPrefix(string(chunk.Batch.Lines), `{"time":"2026-01-01T00:00:00.`) {
		t.Errorf("%s", chunk.Batch.Lines)
	}
}

func TestLimits(t *testing.T) {
	for reason, message := range map[string]string{
		normalize.ReasonTooLarge:      "<14>" + strings.Repeat("x", 2<<20),
		normalize.ReasonKeyTooLong:    "<14>1 - - - - - [" + strings.Repeat("x", 2000) + "]",
		normalize.ReasonTooManyFields: "<14>1 - - - - - " + strings.Repeat("[x]", 2000),
	} {
		chunk := newChunk(message)
		Protocol{}.DecodePacket(chunk)
		if chunk.Batch.RejectedFor(reason) != 1 || chunk.Batch.Records != 0 {
			t.Errorf("%s: %d records, %+v", reason, chunk.Batch.Records, chunk.Batch.Rejected)
		}
	}
}

// decode gives a session what write holds, piece by piece, as a connection
// does, and returns the texts of its events.
func decode(t *testing.T, p Protocol, pieces ...string) (texts []string, b *normalize.Batch, torn bool) {
	t.Helper()
	chunk, session := newChunk(""), p.Open()
	var left []byte
	for _, piece := range append(pieces, "") {
		left = append(left, piece...)
		chunk.Data, chunk.End = left, piece == ""
		n, err := session.Decode(chunk)
		if err != nil {
			t.Fatal(err)
		}
		left = left[n:]
	}
	for line := range strings.Lines(string(chunk.Batch.Lines)) {
		_, text, _ := strings.Cut(line, `"msg":"`)
		text, _, _ = strings.Cut(text, `","`)
		if strings.Contains(line, `"torn":true`) {
			text += " (torn)"
		}
		texts = append(texts, text)
	}
	return texts, chunk.Batch, len(left) > 0
}

func TestFrames(t *testing.T) {
	for _, c := range []struct {
		name, stream, want string // texts, with '|' between them
		torn               bool
	}{
		{"LF", "<14>a\n<14>b\n", "a|b", false},
		{"CRLF and blank lines", "<14>a\r\n\n\r\n<14>b\r\n", "a|b", false},
		{"NUL", "<14>a\x00<14>b\x00", "a|b", false},
		{"NUL with line ends in messages", "<14>a\nb\n\x00<14>c\nd\x00<14>e\x00", `a\nb|c\nd|e`, false},
		{"NUL and LF", "<14>a\x00<14>b\n<14>c\x00", "a|b|c", false},
		{"octets", "5 <14>a6 <14>bb7 <14>c\nc", `a|bb|c\nc`, false},
		{"octets with line ends behind", "5 <14>a\n6 <14>bb\n", "a|bb", false},
		{"octets of a message without a priority", "5 <14>a3 b c", "a|b c", false},
		{"all in one", "<14>a\n5 <14>b<14>c\x0010 <14>d\n<14>\n<14>e\n", `a|b|c|d\n\u003c14\u003e|e`, false},
		{"a line that begins with a number", "12 monkeys\n<14>a\n", "12 monkeys|a", false},
		{"a number of ten digits", "1234567890 <14>a\n<14>b\n", "1234567890 <14>a|b", false},
		{"a number of nine digits and no more", "<14>a\n123456789", "a", true},
		{"a number that begins with zero", "06 <14>ab\n<14>b\n", "06 <14>ab|b", false},
		{"a number without a space", "6<14>ab\n<14>b\n", "6<14>ab|b", false},
		{"a number behind octets, without a space", "5 <14>a6<14>ab\n<14>b\n", "a|6<14>ab|b", false},
		{"no end", "<14>a\n<14>b", "a|b (torn)", false},
		{"octets missing", "5 <14>a9 <14>bb", "a", true},
		{"only a number", "<14>a\n12", "a", true},
		{"too long", "<14>a\n<14>" + strings.Repeat("x", 300) + "\n<14>b\n", "a|b", false},
		{"octets too long", "5 <14>a300 <14>" + strings.Repeat("x", 296) + "5 <14>b", "a|b", false},
		{"too long without end", "<14>a\n<14>" + strings.Repeat("x", 300), "a", false},
		{"nothing", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Protocol{MaxMessage: 200}
			for size := range []int{1, 2, 3, 7, 1000} {
				var pieces []string
				for at := 0; at < len(c.stream); at += size + 1 {
					pieces = append(pieces, c.stream[at:min(len(c.stream), at+size+1)])
				}
				texts, b, torn := decode(t, p, pieces...)
				// In pieces nobody knows yet that messages end with NUL.
				if size < 10 && strings.Contains(c.name, "with line ends in") {
					continue
				}
				want := strings.ReplaceAll(c.want, `\u003c14\u003e`, "<14>")
				if got := strings.Join(texts, "|"); got != want || torn != c.torn {
					t.Errorf("in pieces of %d: %s, torn %v; want %s", size+1, got, torn, want)
				}
				if long := strings.Contains(c.name, "too long"); long != (b.RejectedFor(normalize.ReasonTooLarge) == 1) || b.RejectedTotal > 1 {
					t.Errorf("rejected: %+v", b.Rejected)
				}
			}
		})
	}
}

// GELF that is packed and sent to the port of syslog is no text.
func TestBinary(t *testing.T) {
	var zipped, deflated bytes.Buffer
	for _, w := range []io.WriteCloser{gzip.NewWriter(&zipped), zlib.NewWriter(&deflated)} {
		io.WriteString(w, `{"version":"1.1","host":"web-1","short_message":"disk full","level":3}`) // to memory
		w.Close()
	}
	for _, data := range []string{zipped.String(), deflated.String(), "<14>1 - h a - - - \x00\x01\xff"} {
		c := newChunk(data)
		Protocol{}.DecodePacket(c)
		if b := c.Batch; b.Records != 0 || b.RejectedFor(normalize.ReasonBinary) != 1 || !strings.Contains(b.Rejected[0].Detail, "binary data") {
			t.Errorf("%q: %+v\n%s", data, b.Rejected, b.Lines)
		}
	}
}
