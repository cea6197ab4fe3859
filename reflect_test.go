package rollway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/encode"
)

type Deep struct {
	X   int `json:"x"`
	Own string
}

type other struct {
	X    int `json:"x"`
	Same int
}

type same struct{ Same int }

type hiddenInt int

type tagged struct{ A int }

// embedding has what encoding/json decides by depth, tags and names.
type embedding struct {
	Deep
	*other
	same
	hiddenInt
	tagged  `json:"named"`
	Own     int `json:"own"`
	private int
	Skipped int `json:"-"`
	//lint:ignore SA5008 encoding/json takes it for the name -
	Dash int `json:"-,"`
	//lint:ignore SA5008 encoding/json takes the name of the field
	Odd      int            `json:"a\"b"`
	Empty    []int          `json:",omitempty"`
	NoMap    map[string]int `json:"noMap,omitempty"`
	Zero     time.Time      `json:"zero,omitzero"`
	ZeroAddr netip.Addr     `json:"za,omitzero"`
	Ptr      *int           `json:"ptr,omitempty"`
	NilPtr   *int
	Text     string   `json:",string"`
	Number   int      `json:"number,string"`
	Float    *float64 `json:",string"`
	Flag     bool     `json:"größe,string"`
	F32      float32
	U8       uint8
	Any      any
	Iface    fmt.Stringer
	Array    [3]int
	Bytes    [2]byte
	Raw      json.RawMessage
	Num      json.Number
	Nested   map[string][]map[int]*Deep
	Keys     map[netip.Addr]string
	Big      *big.Int
}

// Cyclic embeds a pointer to itself.
type Cyclic struct {
	*Cyclic
	N int
}

type emptyNames struct {
	A int `json:""`
	B int `json:",omitempty"`
	C int `json:"c,unknown"`
}

// TestReflectAsEncodingJSON: what has no method that this package asks beyond
// encoding/json is written as that writes it.
func TestReflectAsEncodingJSON(t *testing.T) {
	n, f := 7, 2.5
	full := &embedding{
		Deep: Deep{1, "x"}, other: &other{2, 3}, same: same{4}, hiddenInt: 5, tagged: tagged{6}, private: 1, Skipped: 1, Dash: 2, Odd: 3,
		Empty: []int{1}, NoMap: map[string]int{"b": 1, "a": 2}, Ptr: &n, Text: `a"b`, Number: 5, Float: &f, Flag: true, F32: 0.1, U8: 200,
		Any: map[string]any{"x": []any{1, "a\n", nil, 1.5e30, true}}, Array: [3]int{1, 2, 3}, Bytes: [2]byte{1, 2}, Raw: json.RawMessage(` {"a" : 1}`), Num: "12.50",
		Nested: map[string][]map[int]*Deep{"k": {{2: {1, "y"}, 10: nil}}}, Keys: map[netip.Addr]string{netip.MustParseAddr("1.2.3.4"): "a"}, Big: big.NewInt(1e18),
	}
	for _, v := range []any{
		embedding{}, &embedding{}, *full, full, []*embedding{nil, full}, Cyclic{nil, 1}, &Cyclic{&Cyclic{nil, 2}, 1}, emptyNames{1, 0, 3},
		[]any(nil), map[string]int(nil), (*Deep)(nil), []Deep{}, [0]int{}, struct{}{}, map[int8]string{-1: "a", 1: "b"}, map[uint]any{7: nil},
		[]float32{3.4e38, 1e-7, 0.1, 16777216}, int8(-5), uintptr(9), []byte{}, []uint8("abc"), json.Number("5"), map[string]json.Number{"n": "1e5"},
		struct{ A, B any }{1, "<&>"}, struct{ V *any }{}, [][]string{{"a"}, nil}, map[string]map[string]bool{"a": {"b": true}}, complexKeys{{1, 2}: "a"},
	} {
		got := AppendJSON(nil, slog.AnyValue(v))
		if w := marshaled(t, v); string(got) != w {
			t.Errorf("%T:\n got %s\nwant %s", v, got, w)
		}
	}
}

// marshaled is v as encoding/json has it, with the escapes of this package.
func marshaled(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029", `\ufffd`, "\ufffd").Replace(string(encode.AppendRawJSON(nil, b.Bytes())))
}

type complexKeys map[textKeyOf]string

type textKeyOf struct{ A, B int }

func (k textKeyOf) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d/%d", k.A, k.B), nil }

// FuzzReflect holds documents of any shape against encoding/json.
func FuzzReflect(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}],"c":"d\u2028"}`, `[]`, `"\ud800"`, `1e400`, `{"":{"":{}}}`, `[[[[1.5]]],-0,12345678901234567890]`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var v any
		if json.Unmarshal(doc, &v) != nil {
			return
		}
		got := AppendJSON(nil, slog.AnyValue(v))
		if w := marshaled(t, v); string(got) != w && !strings.Contains(w+string(got), "too deep") {
			t.Errorf("got %s\nwant %s", got, w)
		}
		checkKeys(t, got)
	})
}

// Types that say how they are written, each by one method; those in capitals
// only by their pointers.
type (
	asError    struct{ s string }
	asStringer struct{ s string }
	asText     struct{ s string }
	asValuer   struct{ s string }
	asJSON     struct{ s string }
	asObject   struct{ s string }
	ByPointer  struct{ S string }
	intName    int
)

// LogValuers that have another method too, which says what they hide.
type (
	errorValuer struct {
		asValuer
		asError
	}
	objectValuer struct {
		asValuer
		asObject
	}
	textValuer struct {
		asValuer
		asText
	}
	stringValuer struct {
		asValuer
		asStringer
	}
)

var (
	anError  = errorValuer{asValuer{"l"}, asError{"CLEAR"}}
	anObject = objectValuer{asValuer{"l"}, asObject{"CLEAR"}}
	aText    = textValuer{asValuer{"l"}, asText{"CLEAR"}}
	aString  = stringValuer{asValuer{"l"}, asStringer{"CLEAR"}}
)

func (v asError) Error() string               { return v.s }
func (v asStringer) String() string           { return v.s }
func (v asText) MarshalText() ([]byte, error) { return []byte(v.s), nil }
func (v asValuer) LogValue() slog.Value       { return slog.StringValue(v.s) }
func (v asJSON) MarshalJSON() ([]byte, error) { return json.Marshal(v.s) }
func (v asObject) AppendLog(o *Object)        { o.Add(slog.String("is", v.s)) }
func (v *ByPointer) LogValue() slog.Value     { return slog.StringValue("hidden") }
func (v intName) String() string              { return fmt.Sprintf("name%d", int(v)) }

// TestMethodsAtEveryDepth: what says how it is written is asked, wherever it is,
// in every format.
func TestMethodsAtEveryDepth(t *testing.T) {
	type inside struct {
		V any
		E error
		S fmt.Stringer
		T asText
		L asValuer
		P *asValuer
		J asJSON
		N intName
		D time.Duration
		A time.Time
	}
	all := inside{asError{"e"}, asError{"e"}, asStringer{"s"}, asText{"t"}, asValuer{"l"}, &asValuer{"l"}, asJSON{"j"}, 3, time.Second, aTime}
	const want = `{"V":"e","E":"e","S":"s","T":"t","L":"l","P":"l","J":"j","N":"name3","D":1000000000,"A":"2026-05-28T12:40:00.123456789Z"}`
	group := slog.GroupValue(slog.Any("v", asValuer{"l"}))
	for _, c := range []struct {
		v    any
		want string
	}{
		{[]any{asError{"e"}, asStringer{"s"}, asText{"t"}, asValuer{"l"}, asJSON{"j"}, asObject{"o"}, nil}, `["e","s","t","l","j",{"is":"o"},null]`},
		{[]error{asError{"e"}, io.EOF, nil}, `["e","EOF",null]`},
		{map[string]error{"a": asError{"e"}, "b": nil}, `{"a":"e","b":null}`},
		{[2]asStringer{{"a"}, {"b"}}, `["a","b"]`},
		{&[]asValuer{{"l"}}, `["l"]`},
		{map[asText]asValuer{{"k"}: {"l"}}, `{"k":"l"}`},
		{map[asValuer]int{{"l"}: 1}, `{"l":1}`},
		{map[intName]int{1: 2}, `{"name1":2}`},
		{all, want}, {&all, want}, {[]inside{all}, "[" + want + "]"}, {map[string]*inside{"k": &all}, `{"k":` + want + `}`},
		{struct{ P ByPointer }{ByPointer{"clear"}}, `{"P":"hidden"}`}, // not addressable
		{map[string]ByPointer{"k": {"clear"}}, `{"k":"hidden"}`}, {[]ByPointer{{"clear"}}, `["hidden"]`}, {ByPointer{"clear"}, `"hidden"`},
		{struct{ V slog.Value }{slog.AnyValue(asValuer{"l"})}, `{"V":"l"}`},
		{struct{ A slog.Attr }{slog.Any("k", asValuer{"l"})}, `{"A":{"k":"l"}}`},
		{struct{ A []slog.Attr }{[]slog.Attr{slog.Any("k", asValuer{"l"})}}, `{"A":[{"k":"l"}]}`},
		{[]any{group, userValue{1}, &userValue{2}}, `[{"v":"l"},{"id":1,"password":"REDACTED"},{"id":2,"password":"REDACTED"}]`},
		{[]any{loudError{}, panickingString{}, panickingValuer{}, "after"}, `["!PANIC: no text today","!PANIC: rollway.panickingString","!PANIC: valuer","after"]`},
		{[]any{selfValuer{}, (*asError)(nil), (*asValuer)(nil), (fmt.Stringer)(nil)}, `["!ERROR: LogValue returned a LogValuer 100 times",null,null,null]`},
		{[]any{anError, anObject, aText, aString}, `["l","l","l","l"]`}, {[]any{&anError, &anObject, &aText, &aString}, `["l","l","l","l"]`},
		{[]errorValuer{anError}, `["l"]`}, {&[]error{anError, &anError}, `["l","l"]`}, {[]objectValuer{anObject}, `["l"]`}, {[]textValuer{aText}, `["l"]`}, {[]fmt.Stringer{aString}, `["l"]`},
		{map[string]error{"a": anError}, `{"a":"l"}`}, {map[string]any{"a": anObject, "b": &aText, "c": aString}, `{"a":"l","b":"l","c":"l"}`}, {map[textValuer]stringValuer{aText: aString}, `{"l":"l"}`},
		{struct {
			E error
			O *objectValuer
			T textValuer
			S any
		}{anError, &anObject, aText, &aString}, `{"E":"l","O":"l","T":"l","S":"l"}`},
		{anError, `"l"`}, {&anError, `"l"`}, {anObject, `"l"`}, {aText, `"l"`}, {&aString, `"l"`},
		{struct{ C chan int }{}, `{"C":"!ERROR: unsupported type: chan int"}`},
	} {
		for _, enc := range []Encoder{JSON{Layout: "attrs:"}, Logfmt{Layout: "attrs"}, Console{Layout: "attrs", Duration: Nanoseconds}} {
			l, b := newTestLogger(t, enc)
			l.Info(t.Context(), "m", slog.Any("k", c.v))
			l.With(slog.Any("k", c.v)).Info(t.Context(), "m")
			lines := strings.SplitAfter(b.String(), "\n")
			if lines[0] != lines[1] {
				t.Errorf("%T, %T: a call writes %s and With %s", c.v, enc, lines[0], lines[1])
			}
			got := strings.TrimSuffix(lines[0], "\n")
			switch enc.(type) {
			case JSON:
				got = got[len(`{"k":`) : len(got)-1]
			default:
				got = strings.TrimPrefix(got, "k=")
				if strings.HasPrefix(got, `"`) && !strings.HasPrefix(c.want, `"`) {
					if err := json.Unmarshal([]byte(got), &got); err != nil {
						t.Errorf("%v: %s", err, got)
					}
				}
				c.want = strings.Trim(c.want, `"`)
			}
			if got != c.want {
				t.Errorf("%T, %T:\n got %s\nwant %s", c.v, enc, got, c.want)
			}
		}
	}
}

// TestValuesThatHoldThemselves end, and cost no other attribute.
func TestValuesThatHoldThemselves(t *testing.T) {
	type node struct {
		Left, Right *node
		Any         any
	}
	n := &node{}
	n.Left, n.Right, n.Any = n, n, []any{n, n}
	m := map[string]any{"n": n}
	m["m"], m["again"] = m, m
	var v valuerOfItself
	v.self = &v
	for _, enc := range []Encoder{JSON{}, Logfmt{}, Console{}} {
		for _, value := range []any{n, m, &v, []any{&v}} {
			l, b := newTestLogger(t, enc)
			l.Info(t.Context(), "x", slog.Any("v", value), slog.Int("after", 1))
			if got := b.String(); !strings.Contains(got, "!ERROR: ") || !strings.Contains(got, "after") || strings.Count(got, "\n") != 1 {
				t.Errorf("%T, %T: %.300s", enc, value, got)
			}
		}
	}
}

type valuerOfItself struct{ self *valuerOfItself }

func (v *valuerOfItself) LogValue() slog.Value {
	return slog.AnyValue(struct{ Self *valuerOfItself }{v.self})
}

// TestRedactedValues: with Redact no LogValuer is written in clear, and paths of
// keys reach into what it resolves to.
func TestRedactedValues(t *testing.T) {
	type card struct {
		Holder string
		Number ByPointer
	}
	type order struct {
		Card  card
		Cards map[string]*card
		List  []any
		Err   error
		URL   *url.URL
	}
	c := card{"ann", ByPointer{"CLEAR"}}
	u := &url.URL{Scheme: "https", User: url.UserPassword("ann", "CLEAR"), Host: "h"}
	v := order{c, map[string]*card{"k": &c}, []any{c, &c, asValuer{"CLEAR"}, userOf{"CLEAR"}}, fmt.Errorf("is CLEAR: %w", errors.New("CLEAR")), u}
	for _, enc := range []Encoder{JSON{}, JSON{Errors: ErrorDetail}, Logfmt{}, Logfmt{Errors: ErrorDetail}, Console{}, Custom{new(shout)}} {
		for name, r := range map[string]*Redaction{
			"patterns": {Patterns: []*regexp.Regexp{regexp.MustCompile("CLEAR")}},
			"keys":     {Keys: []string{"k.list", "k.card.number", "k.err", "k.url", "number", "g.secret", "o.in.secret", "g.o.secret"}},
		} {
			var b bytes.Buffer
			l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, Redact: r, Caller: LevelOff})
			l.Info(t.Context(), "m", slog.Any("k", v), slog.Any("g", userOf{"CLEAR"}), slog.Any("o", &struct{ In any }{[]any{userOf{"CLEAR"}}}))
			l.With(slog.Any("k", &v)).WithGroup("g").Info(t.Context(), "m", slog.Any("o", []any{userOf{"CLEAR"}}))
			if strings.Contains(b.String(), "CLEAR") {
				t.Errorf("%#v, %s: %s", enc, name, b.String())
			}
		}
	}
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: JSON{Layout: "attrs:"}}}, Redact: &Redaction{Keys: []string{"a.in.secret", "list.secret", "map.k.secret"}}})
	l.Info(t.Context(), "m", slog.Any("a", struct{ In userOf }{userOf{"x"}}), slog.Any("list", []any{userOf{"x"}}), slog.Any("map", map[string]any{"k": userOf{"x"}}), slog.Any("else", userOf{"x"}))
	if got, want := b.String(), `{"a":{"In":{"secret":"[REDACTED]"}},"list":[{"secret":"[REDACTED]"}],"map":{"k":{"secret":"[REDACTED]"}},"else":{"secret":"x"}}`+"\n"; got != want {
		t.Errorf(" got %swant %s", got, want)
	}
}

// TestRedactedLogValuers: with Redact the text of an error that is a LogValuer is
// what LogValue returns, at every depth, also in the texts of errors that wrap it.
func TestRedactedLogValuers(t *testing.T) {
	wrapped := fmt.Errorf("w: %w", fmt.Errorf("v: %w", &anError))
	joined := errors.Join(io.EOF, fmt.Errorf("u: %w", anError))
	values := []any{
		anError, anObject, aText, aString, &anError, &anObject, &aText, &aString, wrapped, joined, hidingError{wrapped}, groupError{},
	}
	values = append(values, slices.Clone(values), map[string]any{"k": slices.Clone(values)}, []error{anError, wrapped, joined},
		&struct {
			E, W error
			L    slog.Value
		}{anError, wrapped, slog.AnyValue(wrapped)})
	for _, enc := range []Encoder{JSON{}, JSON{Errors: ErrorDetail}, Logfmt{}, Logfmt{Errors: ErrorDetail}, Console{}, Console{Errors: ErrorDetail}, Custom{new(shout)}} {
		for _, v := range values {
			for _, key := range []string{"k", "error"} {
				var b bytes.Buffer
				l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, Redact: &Redaction{Keys: []string{"password"}}})
				l.Info(t.Context(), "m", slog.Any(key, v))
				l.With(slog.Any(key, v)).WithGroup("g").Info(t.Context(), "m", slog.Any(key, v))
				if got := b.String(); strings.Contains(got, "CLEAR") || strings.Contains(got, "PANIC") {
					t.Errorf("%#v, %T: %s", enc, v, got)
				}
			}
		}
	}
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: JSON{Errors: ErrorDetail, Layout: "attrs:"}}}, Redact: &Redaction{Keys: []string{"password"}}})
	l.Info(t.Context(), "m", slog.Any("k", wrapped), slog.Any("h", fmt.Errorf("h: %w", hidingError{io.EOF})), slog.Any("g", fmt.Errorf("g: %w", groupError{})), slog.Any("list", []error{wrapped, fmt.Errorf("%w %w", anError, errorValuer{asValuer{"L"}, asError{"CLEAR2"}})}))
	const want = `{"k":{"type":"*fmt.wrapError","message":"w: v: l","causes":[{"type":"*fmt.wrapError","message":"v: l"},{"type":"*rollway.errorValuer","message":"l"}]},` +
		`"h":{"type":"*fmt.wrapError","message":"h: hidden","causes":[{"type":"rollway.hidingError","message":"hidden"}]},` +
		`"g":{"type":"*fmt.wrapError","message":"g: {\"id\":1,\"password\":\"[REDACTED]\"}","causes":[{"type":"rollway.groupError","message":"{\"id\":1,\"password\":\"[REDACTED]\"}"}]},` +
		`"list":["w: v: l","l L"]}` + "\n"
	if got := b.String(); got != want {
		t.Errorf(" got %swant %s", got, want)
	}
	b.Reset()
	l.Info(t.Context(), "m", slog.Any("k", fmt.Errorf("w: %w", loopError{}))) // ends
	l.Info(t.Context(), "m", slog.Any("k", []any{loopError{}}))
	if got := b.String(); strings.Contains(got, "CLEAR") || len(got) > 10_000 {
		t.Errorf("got %.1000s", got)
	}
}

// hidingError is a LogValuer that wraps another error.
type hidingError struct{ err error }

func (e hidingError) Error() string      { return "CLEAR " + e.err.Error() }
func (e hidingError) Unwrap() error      { return e.err }
func (hidingError) LogValue() slog.Value { return slog.StringValue("hidden") }

type groupError struct{}

func (groupError) Error() string { return "CLEAR" }
func (groupError) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("id", 1), slog.String("password", "CLEAR"))
}

// loopError resolves to errors that wrap it.
type loopError struct{}

func (loopError) Error() string { return "CLEAR" }
func (e loopError) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("a", errors.Join(e, e)), slog.Any("b", []error{fmt.Errorf("w: %w", e)}))
}

// userOf resolves to a group with a secret.
type userOf struct{ secret string }

func (u userOf) LogValue() slog.Value { return slog.GroupValue(slog.String("secret", u.secret)) }
