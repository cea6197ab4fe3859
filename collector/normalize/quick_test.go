package normalize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize/vectors"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// values are JSON values and what is nearly one, for both ways of reading.
func values() []string {
	all := append([]string(nil), seeds...)
	vectors := vectors.Values()
	for i := range vectors {
		if text := vectors[i].Text; len(text) < 1<<13 {
			all = append(all, text, `{"k":`+text+`}`, `[{"a":1,"metadata":{"k":`+text+`}},{"b":2}]`, "{\"a\":1}\n{\"k\":"+text+"}\n{\"b\":2}")
		}
	}
	return all
}

// account is all that a batch tells.
func account(b *Batch, err error) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v\n%s%d stored of %d to %d, %d rejected %v, %d dropped\n", err, b.Lines, b.Records, b.MinTime, b.MaxTime, b.RejectedTotal, b.byReason, b.DroppedTotal)
	for _, r := range b.Rejected {
		fmt.Fprintf(&s, "%+v\n", r)
	}
	for i := range b.deadLetters {
		fmt.Fprintf(&s, "%+v %s\n", b.deadLetters[i], b.Text(&b.deadLetters[i]))
	}
	return s.String()
}

// pair are two Normalizers, of which in one the decoder reads all.
type pair struct{ quick, strict *Normalizer }

func newPair(limits Limits) pair {
	p := pair{New(limits), New(limits)}
	p.strict.strict = true
	return p
}

// same fails unless a body comes to the same in both.
func (p pair) same(t *testing.T, body []byte) {
	t.Helper()
	quick, strict := p.quick, p.strict
	var a, b Batch
	a.KeepDeadLetters(1 << 20)
	b.KeepDeadLetters(1 << 20)
	got, want := account(&a, quick.Body(&a, body, received)), account(&b, strict.Body(&b, body, received))
	if got != want {
		t.Fatalf("%.300q\ncomes to     %.2000s\nby the decoder %.2000s", body, got, want)
	}
	a.Reset()
	b.Reset()
	got, want = account(&a, quick.Line(&a, body, received)), account(&b, strict.Line(&b, body, received))
	if got != want {
		t.Fatalf("line %.300q\ncomes to     %.2000s\nby the decoder %.2000s", body, got, want)
	}
}

var smallLimits = Limits{MaxEventBytes: 300, MaxDepth: 6, MaxFields: 8, MaxKeyBytes: 20, MaxValueBytes: 100, MaxEvents: 5, MaxRejections: 3}

func TestQuickIsTheDecoder(t *testing.T) {
	usual, small := newPair(Limits{}), newPair(smallLimits)
	for _, body := range values() {
		usual.same(t, []byte(body))
		small.same(t, []byte(body))
	}
	// Every byte that a body may be cut at, or may have in another's place.
	body := []byte(`[{"msg":"a\u00e9\\é","ts":-1.5E+3,"x":[ true,{"y":null},[]] , "metadata" :{"z":{ },"z":0}}, {} ]`)
	for i := range body {
		usual.same(t, body[:i])
		changed := bytes.Clone(body)
		for _, c := range []byte("\"\\{}[]:, \n\x00\x1fA0-.eEtn\x7f\x80\xff") {
			changed[i] = c
			usual.same(t, changed)
		}
	}
}

// TestQuickReadsWhatIsValid: so that the decoder is asked about nothing else.
func TestQuickReadsWhatIsValid(t *testing.T) {
	events := 0
	for _, text := range values() {
		value, isValid := []byte(text), json.Valid([]byte(text)) && utf8.ValidString(text)
		if start := jsonwalk.SkipSpace(value, 0); isValid && value[start] == '{' {
			n, b := New(Limits{}), new(Batch)
			n.begin(b, value, received)
			n.text(0, len(value), 1)
			if quick := n.quickValues(b); quick != (depthOf(text) <= maxNested) {
				t.Errorf("%.200q: read %t", text, quick)
			}
			events++
		}
	}
	if events < 100 {
		t.Errorf("only %d events tried", events)
	}
}

// depthOf is how deep valid JSON nests.
func depthOf(text string) (most int) {
	now, in := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case in && c == '\\':
			i++
		case c == '"':
			in = !in
		case in:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

func FuzzQuick(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		newPair(Limits{}).same(t, body)
		newPair(smallLimits).same(t, body)
	})
}

// TestBuilderAttrs: what goes straight to attrs is as what is copied there.
func TestBuilderAttrs(t *testing.T) {
	n, batch := New(Limits{MaxDepth: 5}), new(Batch)
	b := n.Build(batch, received)
	b.Begin()
	for _, name := range []string{"a", "a", "q\"\n", "q\"\n", "bad\xff", "bad\uFFFD"} {
		b.Attr([]byte(name))
		b.Int(1)
	}
	b.Attr([]byte("o"))
	b.BeginObject()
	b.Name([]byte("x"))
	b.JSON([]byte(`{ "y" : [ 1 , "  " ] }`))
	b.Name([]byte("z"))
	b.JSON([]byte(`2`))
	b.EndObject()
	b.Slot(Message)
	b.String([]byte("first"))
	b.Slot(Message)
	b.String([]byte("second"))
	b.Field([]byte("p"))
	b.JSON([]byte("[ ]"))
	if !b.End() {
		t.Fatal(batch.Rejected)
	}
	_, got, _ := strings.Cut(string(batch.Lines), `,"msg":`)
	want := `"first","attrs":{"a":1,"a_2":1,"q\"\n":1,"q\"\n_2":1,"bad�":1,"bad�_2":1,"o":{"x":{"y":[1,"  "]},"z":2},"msg":"second","p":[]}}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	// One level more than there may be, in each way; and an event left in a value.
	for i, value := range []func(){
		func() { b.JSON([]byte(`[[[[]]]]`)) },
		func() { b.BeginArray(); b.JSON([]byte(`[[[]]]`)); b.EndArray() },
		func() { b.BeginArray(); b.BeginArray(); b.BeginArray(); b.BeginArray() },
	} {
		b.Begin()
		b.Attr([]byte("k"))
		value()
		if !b.Failed() {
			t.Errorf("%d: not too deep", i)
		}
	}
	b.Done()
	b = n.Build(batch, received)
	b.Begin()
	b.Attr([]byte("k"))
	b.JSON([]byte(`[[[]]]`))
	if !b.End() || !strings.HasSuffix(string(batch.Lines), `,"attrs":{"k":[[[]]]}}`+"\n") {
		t.Errorf("%s%v", batch.Lines, batch.Rejected)
	}
	b.Done()
}
