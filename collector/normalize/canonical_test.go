package normalize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
)

// loggerLine writes a line as the library's Logger does: jsonline's functions,
// the canonical key order, a random choice of keys.
func loggerLine(rng *rand.Rand) string {
	text := func() string {
		alphabet := []string{"a", "Z", " ", `"`, `\`, "\n", "é", "日", "😀", "\x00", "/", "<", "\u2028", "{", "]", ",", ":"}
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	var value func(dst []byte, depth int) []byte
	value = func(dst []byte, depth int) []byte {
		switch k := rng.IntN(8); {
		case k == 0 && depth < 5:
			dst = append(dst, '[')
			for i := range rng.IntN(4) {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = value(dst, depth+1)
			}
			return append(dst, ']')
		case k == 1 && depth < 5:
			dst = append(dst, '{')
			for i := range rng.IntN(4) {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = jsonline.AppendString(dst, text())
				dst = value(append(dst, ':'), depth+1)
			}
			return append(dst, '}')
		case k == 2:
			return append(dst, "null"...)
		case k == 3:
			return append(dst, "true"...)
		case k == 4:
			return jsonline.AppendFloat(dst, rng.NormFloat64()*1e9)
		case k == 5:
			return fmt.Appendf(dst, "%d", rng.Uint64())
		default:
			return jsonline.AppendString(dst, text())
		}
	}
	dst := append([]byte(nil), `{"time":"`...)
	dst = jsonline.AppendUnix(dst, jsonline.FirstSecond+rng.Int64N(jsonline.LastSecond-jsonline.FirstSecond), rng.IntN(1e9))
	dst = append(dst, `","level":"`...)
	dst = levels.Append(dst, slog.Level(rng.IntN(40)-15))
	dst = append(dst, '"')
	for _, key := range []string{"msg", "service", "logger", "source", "trace_id", "span_id", "error"} {
		if rng.IntN(2) == 0 {
			continue
		}
		dst = append(dst, `,"`+key+`":`...)
		switch {
		case key == "error":
			dst = value(dst, 0)
		case key == "source" && rng.IntN(2) == 0:
			dst = append(dst, `{"file":"a.go","line":7}`...)
		default:
			dst = jsonline.AppendString(dst, text())
		}
	}
	if n := rng.IntN(30); n > 0 {
		dst = append(dst, `,"attrs":{`...)
		for i := range n {
			dst = jsonline.AppendString(dst, fmt.Sprintf("%d%s", i, text()))
			dst = value(append(dst, ':'), 0)
			dst = append(dst, ',')
		}
		dst[len(dst)-1] = '}'
	}
	return string(append(dst, "}\n"...))
}

func TestLoggerLinesPassUnchanged(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 11))
	n, b := New(Limits{MaxFuture: -1, MaxPast: -1, NoFingerprint: true}), new(Batch)
	var all strings.Builder
	for range 3000 {
		line := loggerLine(rng)
		checkCanonical(t, strings.TrimSuffix(line, "\n"))
		all.WriteString(line)
		b.Reset()
		if err := n.Line(b, []byte(line), received); err != nil || string(b.Lines) != line {
			t.Fatalf("%v\nline %sgot  %s", err, line, b.Lines)
		}
	}
	b.Reset()
	if err := n.Body(b, []byte(all.String()), received); err != nil || string(b.AppendTo(nil)) != all.String() {
		t.Fatalf("as one body: %v, %d of 3000 lines", err, b.Records)
	}
}

func TestLossNoticePassesUnchanged(t *testing.T) {
	line := jsonline.AppendLossNotice(nil, time.Unix(1779972000, 7), 812, "buffer full")
	b := new(Batch)
	if err := New(Limits{}).Line(b, line, received); err != nil || !bytes.Equal(b.Lines, line) {
		t.Fatalf("%v\nline %sgot  %s", err, line, b.Lines)
	}
}

// TestManyFields compares names against a map, with so many that the hash
// table is in use, and the same name often.
func TestManyFields(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 50 {
		var in strings.Builder
		count := 1 + rng.IntN(1000)
		for i := range count {
			fmt.Fprintf(&in, `,"k%d%s":%d`, rng.IntN(200), []string{"", "_2", "_3"}[rng.IntN(3)], i)
		}
		b, err := normalizeBody(t, Limits{}, "{"+in.String()[1:]+"}")
		if err != nil || b.Records != 1 {
			t.Fatal(err, b.Rejected)
		}
		var got struct{ Attrs map[string]int }
		if err := json.Unmarshal(b.Lines, &got); err != nil {
			t.Fatal(err)
		}
		values := map[int]bool{}
		for _, v := range got.Attrs {
			values[v] = true
		}
		if len(got.Attrs) != count || len(values) != count {
			t.Fatalf("%d members became %d names with %d values", count, len(got.Attrs), len(values))
		}
	}
}

// TestNothingOfABatchSurvivesReset gives one Normalizer and Batch to two
// tenants in turn.
func TestNothingOfABatchSurvivesReset(t *testing.T) {
	n, b := New(Limits{}), new(Batch)
	for i := range 200 {
		b.Reset()
		n.Body(b, []byte(`[{"msg":"canary","error":"canary","canary":{"canary":1},"\u0063anary":2},3,{"canary":"`+"\xff"+`"}]`), received)
		b.Reset()
		if i%2 == 0 {
			n.Body(b, []byte(`[{"canary":"`), received) // broken off inside an event
			b.Reset()
		}
		n.Body(b, []byte(`[{"a":1},{}]`), received)
		if want := prefix + `,"attrs":{"a":1}}` + "\n" + prefix + "}\n"; string(b.Lines) != want || len(b.Rejected) != 0 || b.RejectedTotal != 0 {
			t.Fatalf("got %s%+v", b.Lines, b)
		}
		if n.body.all != nil || n.body.text != nil {
			t.Fatal("the Normalizer keeps the body")
		}
	}
}

func TestInputIsNotWritten(t *testing.T) {
	body := []byte("[" + article + `,{"a":"\u0061","a":[1, 2]},{"x":` + "\"\xff\"}]")
	before := bytes.Clone(body)
	n, b := New(Limits{}), new(Batch)
	n.Body(b, body, received)
	clear(body)
	if err := n.Body(new(Batch), before, received); err != nil {
		t.Fatal(err)
	}
	c := new(Batch)
	n.Body(c, before, received)
	if !bytes.Equal(b.Lines, c.Lines) || b.Records != 3 {
		t.Errorf("got %s, then %s", b.Lines, c.Lines)
	}
}
