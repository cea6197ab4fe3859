package normalize

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/testkit"
)

func TestBuilder(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(b *Builder)
		want  string // after prefix
	}{
		{"nothing", func(b *Builder) {}, `}`},
		{"slots", func(b *Builder) {
			b.Slot(SpanID)
			b.String([]byte("s"))
			b.Slot(Message)
			b.String([]byte("a\n\"b\""))
			b.Slot(Service)
			b.String([]byte("svc"))
		}, `,"msg":"a\n\"b\"","service":"svc","span_id":"s"}`},
		{"a slot twice", func(b *Builder) {
			b.Slot(Message)
			b.String([]byte("one"))
			b.Slot(Message)
			b.String([]byte("two"))
		}, `,"msg":"one","attrs":{"msg":"two"}}`},
		{"a slot under another name", func(b *Builder) {
			b.SlotNamed(TraceID, []byte("trace"))
			b.String([]byte("one"))
			b.SlotNamed(TraceID, []byte("trace"))
			b.String([]byte("two"))
		}, `,"trace_id":"one","attrs":{"trace":"two"}}`},
		{"what does not fit", func(b *Builder) {
			b.Slot(Time)
			b.String([]byte("noon"))
			b.Slot(Level)
			b.BeginArray()
			b.EndArray()
			b.Slot(Message)
			b.Null()
		}, `,"attrs":{"time":"noon","level":[],"msg":null}}`},
		{"a message that is a number", func(b *Builder) { b.Slot(Message); b.Int(-5) }, `,"msg":"-5"}`},
		{"values", func(b *Builder) {
			for _, f := range []func(){
				func() { b.Int(math.MinInt64) }, func() { b.Uint(math.MaxUint64) }, func() { b.Float(1.5) },
				func() { b.Float(math.NaN()) }, func() { b.Float(math.Inf(-1)) }, func() { b.Float(math.Inf(1)) },
				func() { b.Bool(true) }, func() { b.Bool(false) }, b.Null,
				func() { b.Bytes([]byte{1, 2, 255}) }, func() { b.String([]byte("\xff")) }, func() { b.JSON([]byte(`{"a" : 1}`)) },
			} {
				b.Attr([]byte("k"))
				f()
			}
		}, `,"attrs":{"k":-9223372036854775808,"k_2":18446744073709551615,"k_3":1.5,"k_4":"NaN","k_5":"-Inf","k_6":"+Inf",` +
			`"k_7":true,"k_8":false,"k_9":null,"k_10":"AQL/","k_11":"�","k_12":{"a":1}}}`},
		{"nested", func(b *Builder) {
			b.Attr([]byte("a"))
			b.BeginObject()
			b.Name([]byte("x"))
			b.BeginArray()
			b.Int(1)
			b.BeginObject()
			b.EndObject()
			b.BeginArray()
			b.EndArray()
			b.String(nil)
			b.EndArray()
			b.Name([]byte("y"))
			b.Bool(true)
			b.EndObject()
		}, `,"attrs":{"a":{"x":[1,{},[],""],"y":true}}}`},
		{"fields", func(b *Builder) {
			b.Field([]byte("message"))
			b.String([]byte("hi"))
			b.Field([]byte("log"))
			b.String([]byte("second"))
			b.Field([]byte("attributes"))
			b.BeginObject()
			b.Name([]byte("message"))
			b.Int(1)
			b.Name([]byte("o"))
			b.BeginObject()
			b.Name([]byte("attrs"))
			b.BeginObject()
			b.EndObject()
			b.EndObject()
			b.EndObject()
			b.Field([]byte("fields"))
			b.Int(2)
		}, `,"msg":"hi","attrs":{"log":"second","message":1,"o":{"attrs":{}},"fields":2}}`},
		{"an object of JSON", func(b *Builder) {
			b.Attr([]byte("host"))
			b.String([]byte("h"))
			b.Message([]byte(` {"msg":"\u0061", "metadata":{"host":1}, "x":[1, 2]} `))
		}, `,"msg":"\u0061","attrs":{"host":"h","host_2":1,"x":[1,2]}}`},
	} {
		n, b := New(Limits{}), new(Batch)
		for range 2 { // the second meets what the first left
			b.Reset()
			build := n.Build(b, received)
			build.Begin()
			tc.build(build)
			if !build.End() {
				t.Errorf("%s: rejected: %+v", tc.name, b.Rejected)
			}
			build.Done()
			checkBatch(t, b)
			if got, want := string(b.Lines), prefix+tc.want+"\n"; got != want {
				t.Errorf("%s:\n got %s\nwant %s", tc.name, got, want)
			}
		}
	}
}

func TestBuilderTimeAndLevel(t *testing.T) {
	n, b := New(Limits{MaxPast: -1}), new(Batch)
	build := n.Build(b, received)
	build.Begin()
	build.SetTime(1, 2)
	build.SetLevel(slog.LevelError)
	build.Slot(Time)
	build.Int(5)
	build.End()
	build.Begin()
	build.Slot(Time)
	build.String([]byte("1970-01-01T00:00:03Z"))
	build.Slot(Level)
	build.String([]byte("warning"))
	if !build.Has(Time) || !build.Has(Level) || build.Has(Message) {
		t.Error("Has is wrong")
	}
	build.End()
	build.Done()
	want := `{"time":"1970-01-01T00:00:01.000000002Z","level":"ERROR","attrs":{"time":5}}` + "\n" +
		`{"time":"1970-01-01T00:00:03.000000000Z","level":"WARN"}` + "\n"
	if got := string(b.Lines); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestBuilderLimits(t *testing.T) {
	limits := Limits{MaxEventBytes: 200, MaxDepth: 4, MaxFields: 2, MaxKeyBytes: 5, MaxEvents: 7, MaxRejections: 20}
	n, b := New(limits), new(Batch)
	build := n.Build(b, received)
	long := []byte(strings.Repeat("x", 300))
	for i, f := range []func(){
		func() { build.Attr([]byte("a")); build.String(long) },
		func() { // a nested value that would grow without end
			build.Attr([]byte("a"))
			build.BeginArray()
			for range 10_000 {
				build.String(long)
			}
			build.EndArray()
		},
		func() {
			build.Attr([]byte("a"))
			for range 1000 {
				build.BeginArray()
			}
			for range 1000 {
				build.EndArray()
			}
		},
		func() {
			for _, k := range []string{"a", "b", "c", "d"} {
				build.Attr([]byte(k))
				build.Null()
			}
		},
		func() { build.Attr([]byte("longer")); build.Null() },
		func() {
			build.SetTime(1, 0)
			build.Attr([]byte("a"))
			build.BeginArray()
			build.String(long)
			build.String(long)
			build.EndArray()
		},
		func() { build.Attr([]byte("fine")); build.Null() },
		func() { build.Attr([]byte("late")); build.Null() },
	} {
		build.Begin()
		f()
		if cap(build.text) > 4096 {
			t.Errorf("event %d: %d bytes held", i, cap(build.text))
		}
		build.End()
	}
	build.Reject(ReasonSyntax, "not a frame")
	build.Done()
	checkBatch(t, b)
	var got []string
	for _, r := range b.Rejected {
		got = append(got, r.Reason)
		if r.Detail == "" {
			t.Errorf("%s without a detail", r.Reason)
		}
	}
	want := []string{ReasonTooLarge, ReasonTooLarge, ReasonTooDeep, ReasonTooManyFields, ReasonKeyTooLong, ReasonTooLarge, ReasonTooManyEvents, ReasonSyntax}
	if !reflect.DeepEqual(got, want) || b.Records != 1 {
		t.Errorf("got %d records and %q\nwant 1 and %q", b.Records, got, want)
	}
}

// FuzzBuilder builds each event of a body token by token and through Message,
// and wants the lines that Body makes of it.
func FuzzBuilder(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	small := Limits{MaxEventBytes: 300, MaxDepth: 6, MaxFields: 8, MaxKeyBytes: 20, MaxEvents: 5, MaxRejections: 3}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || body[bytes.IndexAny(body, "{[0123456789tfn\"-")] != '{' {
			return
		}
		for _, limits := range []Limits{{}, small} {
			n, want, whole, tokens := New(limits), new(Batch), new(Batch), new(Batch)
			if n.Body(want, body, received) != nil {
				return
			}
			b := n.Build(whole, received)
			b.Begin()
			b.Message(body)
			b.End()
			b.Done()
			checkBatch(t, whole)
			if opened := len(bytes.Trim(body, "{} \t\r\n")) > 0 && limits.MaxFields == 0 && utf8.Valid(body); opened && string(whole.Lines) != string(want.Lines) {
				t.Fatalf("%s\nBody    %s%+v\nMessage %s%+v", body, want.Lines, want.Rejected, whole.Lines, whole.Rejected)
			}
			b = n.Build(tokens, received)
			b.Begin()
			walk(t, b, body)
			b.End()
			b.Done()
			checkBatch(t, tokens)
			if limits.MaxEvents == 0 && utf8.Valid(body) && !reflect.DeepEqual(decoded(t, tokens), decoded(t, want)) {
				t.Fatalf("%s\nBody   %s%+v\ntokens %s%+v", body, want.Lines, want.Rejected, tokens.Lines, tokens.Rejected)
			}
		}
	})
}

func decoded(t *testing.T, b *Batch) (events []any) {
	dec := json.NewDecoder(bytes.NewReader(b.Lines))
	dec.UseNumber()
	for {
		var v any
		if err := dec.Decode(&v); err == io.EOF {
			return events
		} else if err != nil {
			t.Fatal(err)
		}
		events = append(events, v)
	}
}

// walk gives the members of a JSON object to b, each token by its method.
func walk(t *testing.T, b *Builder, object []byte) {
	dec := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	dec.ReadToken()
	for dec.StackDepth() > 0 {
		tok, err := dec.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		kind, n := dec.StackIndex(dec.StackDepth())
		isName := kind == '{' && n%2 == 1 && tok.Kind() == '"'
		switch tok.Kind() {
		case '{':
			b.BeginObject()
		case '}':
			if dec.StackDepth() > 0 {
				b.EndObject()
			}
		case '[':
			b.BeginArray()
		case ']':
			b.EndArray()
		case '"':
			switch text := []byte(tok.String()); {
			case isName && dec.StackDepth() == 1:
				b.Field(text)
			case isName:
				b.Name(text)
			default:
				b.String(text)
			}
		case '0':
			b.JSON([]byte(tok.String()))
		case 't', 'f':
			b.Bool(tok.Kind() == 't')
		case 'n':
			b.Null()
		}
	}
}

func TestBuilderDoesNotAllocate(t *testing.T) {
	n, batch := New(Limits{}), new(Batch)
	name, text, object := []byte("name"), []byte("some \"text\""), []byte(`{"a":1,"msg":"x","b":[1,2]}`)
	if got := testkit.Mallocs(func() {
		batch.Reset()
		b := n.Build(batch, received)
		for range 10_000 {
			b.Begin()
			b.SetTime(1, 2)
			b.Slot(Service)
			b.String(text)
			b.Attr(name)
			b.BeginObject()
			b.Name(name)
			b.Float(1.5)
			b.EndObject()
			b.Message(object)
			b.End()
		}
		b.Done()
	}); got > uint64(batch.Size()/chunkBytes) { // one for each chunk
		t.Errorf("%d allocations for %d events of %d bytes", got, batch.Records, batch.Size())
	}
}

func TestExtras(t *testing.T) {
	x := new(Extras)
	x.Add("tenant", "shop")
	x.Add("via", "a\"b")
	n, b := New(Limits{}), new(Batch)
	n.SetExtras(x)
	if err := n.Body(b, []byte(`{"msg":"m","tenant":"forged","attrs":{"via":1}}`+"\n{}"), received); err != nil {
		t.Fatal(err)
	}
	build := n.Build(b, received)
	build.Begin()
	build.Attr([]byte("tenant"))
	build.Int(1)
	build.End()
	build.Done()
	n.SetExtras(nil)
	n.Line(b, []byte("{}"), received)
	checkBatch(t, b)
	want := prefix + `,"msg":"m","attrs":{"tenant":"shop","via":"a\"b","tenant_2":"forged","via_2":1}}` + "\n" +
		prefix + `,"attrs":{"tenant":"shop","via":"a\"b"}}` + "\n" +
		prefix + `,"attrs":{"tenant":"shop","via":"a\"b","tenant_2":1}}` + "\n" +
		prefix + "}\n"
	if got := string(b.Lines); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
