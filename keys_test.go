package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// checkKeys fails t where an object of a JSON document has a key twice.
func checkKeys(t testing.TB, doc []byte) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var value func() error
	value = func() error {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		seen := map[any]bool{}
		for delim, ok := tok.(json.Delim); ok && dec.More(); {
			if delim == '{' {
				key, err := dec.Token()
				if err != nil {
					return err
				}
				if seen[key] {
					t.Errorf("key %q is twice in %s", key, doc)
				}
				seen[key] = true
			}
			if err := value(); err != nil {
				return err
			}
		}
		if _, ok := tok.(json.Delim); ok {
			_, err = dec.Token()
		}
		return err
	}
	if err := value(); err != nil {
		t.Errorf("%v: %s", err, doc)
	}
}

// checkTextKeys fails t where a line of a text format has a key twice.
func checkTextKeys(t testing.TB, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, "\n")
	seen := map[string]bool{}
	for _, word := range words(line) {
		end := strings.IndexByte(word, '=')
		if strings.HasPrefix(word, `"`) { // a key of the console in quotes
			for end = 1; end < len(word) && word[end] != '"'; end++ {
				if word[end] == '\\' {
					end++
				}
			}
			if end++; end >= len(word) || word[end] != '=' {
				continue // a message
			}
		}
		if end < 0 {
			continue
		}
		if seen[word[:end]] {
			t.Errorf("key %s is twice in %s", word[:end], line)
		}
		seen[word[:end]] = true
	}
}

// TestEachKeyOnce: whichever way keys come, the last one wins: that of the call,
// before the context's, before the Logger's; groups of one name are joined.
func TestEachKeyOnce(t *testing.T) {
	extract := func(_ context.Context, dst []slog.Attr) []slog.Attr {
		return append(dst, slog.Int("x", 10), slog.Int("ext", 11), slog.String("trace_id", "ext"))
	}
	in, str := slog.Int, slog.String
	ctx := ContextWith(t.Context(), in("c", 1), in("x", 1), slog.Group("g", in("c", 1)))
	deep := slog.Group("g", in("a", 5), slog.Group("h", in("b", 5), in("n", 5)))
	for _, c := range []struct {
		name string
		o    Options
		log  func(l *Logger)
		json string // the attrs
		text string
	}{
		{"call", Options{}, func(l *Logger) { l.Info(t.Context(), "m", in("a", 1), in("b", 2), in("a", 3)) }, `{"b":2,"a":3}`, "b=2 a=3"},
		{"With and call", Options{}, func(l *Logger) { l.With(in("a", 1), in("b", 1)).Info(t.Context(), "m", in("a", 2)) }, `{"b":1,"a":2}`, "b=1 a=2"},
		{"With twice", Options{}, func(l *Logger) { l.With(in("a", 1), in("b", 1)).With(in("a", 2)).Info(t.Context(), "m") }, `{"b":1,"a":2}`, "b=1 a=2"},
		{"one With", Options{}, func(l *Logger) { l.With(in("a", 1), in("a", 2)).Info(t.Context(), "m") }, `{"a":2}`, "a=2"},
		{"context and With", Options{}, func(l *Logger) { l.With(in("c", 9), in("w", 9)).Info(ctx, "m") }, `{"c":1,"x":1,"g":{"c":1},"w":9}`, "c=1 x=1 g.c=1 w=9"},
		{"context and call", Options{}, func(l *Logger) { l.Info(ctx, "m", in("c", 2)) }, `{"x":1,"g":{"c":1},"c":2}`, "x=1 g.c=1 c=2"},
		{"context twice", Options{}, func(l *Logger) { l.Info(ContextWith(ctx, in("c", 2)), "m") }, `{"x":1,"g":{"c":1},"c":2}`, "x=1 g.c=1 c=2"},
		{"context and group", Options{}, func(l *Logger) { l.WithGroup("g").Info(ctx, "m", in("y", 2)) }, `{"c":1,"x":1,"g":{"c":1,"y":2}}`, "c=1 x=1 g.c=1 g.y=2"},
		{"context and value under the group's name", Options{}, func(l *Logger) { l.WithGroup("c").Info(ctx, "m", in("y", 2)) }, `{"x":1,"g":{"c":1},"c":{"y":2}}`, "c=1 x=1 g.c=1 c.y=2"},
		{"an empty group takes no place", Options{}, func(l *Logger) { l.With(in("g", 1)).WithGroup("g").Info(t.Context(), "m") }, `{"g":1}`, "g=1"},
		{"a group takes the place of a value", Options{}, func(l *Logger) { l.With(in("g", 1)).WithGroup("g").Info(t.Context(), "m", in("a", 1)) }, `{"g":{"a":1}}`, "g=1 g.a=1"},
		{"a group joins a group", Options{}, func(l *Logger) {
			l.With(deep, in("z", 1)).WithGroup("g").With(in("a", 6)).WithGroup("h").Info(t.Context(), "m", in("b", 7))
		}, `{"z":1,"g":{"a":6,"h":{"n":5,"b":7}}}`, "g.h.n=5 z=1 g.a=6 g.h.b=7"},
		{"groups of a call", Options{}, func(l *Logger) {
			l.Info(t.Context(), "m", deep, slog.Group("g", slog.Group("h", in("b", 6)), in("k", 1)))
		},
			`{"g":{"a":5,"h":{"n":5,"b":6},"k":1}}`, "g.a=5 g.h.n=5 g.h.b=6 g.k=1"},
		{"inside a group", Options{}, func(l *Logger) { l.Info(t.Context(), "m", slog.Group("g", in("a", 1), in("a", 2))) }, `{"g":{"a":2}}`, "g.a=2"},
		{"a group without a name", Options{}, func(l *Logger) {
			l.Info(t.Context(), "m", in("a", 1), slog.Group("", in("a", 2), in("b", 3)), in("b", 4))
		}, `{"a":2,"b":4}`, "a=2 b=4"},
		{"LogValuers", Options{}, func(l *Logger) {
			l.Info(t.Context(), "m", slog.Any("g", userOf{"s"}), slog.Any("", userOf{"t"}), slog.Group("g", in("a", 1)), in("secret", 5))
		}, `{"g":{"secret":"s","a":1},"secret":5}`, "g.secret=s g.a=1 secret=5"},
		{"an empty group is no value", Options{}, func(l *Logger) { l.Info(t.Context(), "m", in("a", 1), slog.Group("a", slog.Group("b"))) }, `{"a":1}`, "a=1"},
		{"extractors", Options{Extract: []func(context.Context, []slog.Attr) []slog.Attr{extract}}, func(l *Logger) { l.With(in("ext", 1)).Info(ctx, "m", in("n", 1)) },
			`{"c":1,"g":{"c":1},"x":10,"ext":11,"n":1}`, "trace_id=ext c=1 g.c=1 x=10 ext=11 n=1"},
		{"extractors and call", Options{Extract: []func(context.Context, []slog.Attr) []slog.Attr{extract}}, func(l *Logger) { l.WithGroup("g").Info(t.Context(), "m", in("x", 1)) },
			`{"x":10,"ext":11,"g":{"x":1}}`, "trace_id=ext x=10 ext=11 g.x=1"},
		{"stack", Options{Stack: slog.LevelInfo}, func(l *Logger) { l.With(str("stack", "w")).Info(t.Context(), "m", str("stack", "mine")) }, `{"stack":"mine"}`, "stack=mine"},
		{"bytes that are not UTF-8", Options{}, func(l *Logger) {
			l.With(in("w\xfe", 0)).Info(t.Context(), "m", in("k\xff", 1), in("k\xfe", 2), in("w\xff", 3))
		},
			"{\"k\uFFFD\":2,\"w\uFFFD\":3}", "k_=2 w_=3"},
		{"bytes that are not UTF-8 in a group", Options{}, func(l *Logger) { l.Info(t.Context(), "m", slog.Group("g", in("k\xff", 1), in("k\xfe", 2))) }, "{\"g\":{\"k\uFFFD\":2}}", "g.k_=2"},
		{"the fields' names", Options{}, func(l *Logger) {
			l.Info(t.Context(), "m", in("time", 1), in("level", 2), in("msg", 3), in("source", 4), in("logger", 5), in("service", 6), in("attrs", 7), in("level", 8))
		}, `{"time":1,"msg":3,"source":4,"logger":5,"service":6,"attrs":7,"level":8}`,
			"attrs.time=1 attrs.msg=3 attrs.source=4 attrs.logger=5 attrs.service=6 attrs=7 attrs.level=8"},
	} {
		var b, lf bytes.Buffer
		c.o.Outputs = []Output{{Writer: &b, Encoder: JSON{Layout: "attrs"}}, {Writer: &lf}}
		c.o.Caller = LevelOff
		text := c.o
		c.log(mustNew(t, c.o))
		got := strings.TrimSuffix(strings.TrimPrefix(b.String(), `{"attrs":`), "}\n")
		if c.name == "extractors" || c.name == "extractors and call" {
			got = strings.Replace(got, `,"trace_id":"ext"`, "", 1) // the layout has no such field
		}
		if got != c.json {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.json)
		}
		checkKeys(t, lf.Bytes())
		lf.Reset()
		text.Outputs = []Output{{Writer: &lf, Encoder: Logfmt{}}}
		c.log(mustNew(t, text))
		_, got, _ = strings.Cut(strings.TrimSuffix(lf.String(), "\n"), " level=INFO msg=m ")
		if got != c.text {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.text)
		}
	}
}

// TestKeysAtTheTop: beside the fields an attribute that has the name of one gets
// attrs. in front, also a group and what Options.Stack adds.
func TestKeysAtTheTop(t *testing.T) {
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: JSON{Layout: "level msg:stack error attrs:"}}}, Stack: slog.LevelError, Caller: LevelOff})
	l.With(slog.Int("level", 1)).Info(t.Context(), "m", slog.Int("attrs.level", 2), slog.Int("stack", 3), slog.Group("", slog.Any("error", io.EOF)))
	l.WithGroup("level").Info(t.Context(), "m", slog.Int("level", 3))
	l.WithGroup("level").With(slog.Int("a", 1)).Info(ContextWith(t.Context(), slog.Int("level", 1)), "m")
	want := `{"level":"INFO","stack":"m","error":"EOF","attrs.level":2,"attrs.stack":3}
{"level":"INFO","stack":"m","attrs.level":{"level":3}}
{"level":"INFO","stack":"m","attrs.level":{"a":1}}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	l.Error(t.Context(), "m", slog.Any("error", io.EOF))
	if got := b.String(); !strings.HasPrefix(got, `{"level":"ERROR","stack":"m","error":"EOF","attrs.stack":"`) {
		t.Errorf("got %s", got)
	}
	checkKeys(t, b.Bytes())
}

// TestKeysOfErrors: what an error adds to a logfmt line counts as its fields do.
func TestKeysOfErrors(t *testing.T) {
	l, b := newTestLogger(t, Logfmt{Layout: "msg error attrs", Errors: ErrorDetail})
	wrapped := fmt.Errorf("a: %w", io.EOF)
	const slot = `msg=m error="a: EOF" error.type=*fmt.wrapError error.causes.0=EOF error.causes.0.type=*errors.errorString`
	for _, c := range []struct {
		log  func()
		want string
	}{
		{func() { l.Info(t.Context(), "m", slog.Any("error", wrapped), slog.String("error.type", "x")) }, slot + " attrs.error.type=x"},
		{func() { l.With(slog.Any("error", wrapped)).Info(t.Context(), "m", slog.String("error.type", "x")) }, slot + " attrs.error.type=x"},
		{func() { l.With(slog.String("error.type", "x")).Info(t.Context(), "m", slog.Any("error", wrapped)) }, slot + " attrs.error.type=x"},
		{func() { l.Info(t.Context(), "m", slog.Any("e", wrapped), slog.String("e.type", "x")) }, `msg=m e="a: EOF" e.causes.0=EOF e.causes.0.type=*errors.errorString e.type=x`},
		{func() { l.With(slog.String("e.type", "x")).Info(t.Context(), "m", slog.Any("e", io.EOF)) }, `msg=m e=EOF e.type=*errors.errorString`},
	} {
		b.Reset()
		c.log()
		if got := b.String(); got != c.want+"\n" {
			t.Errorf(" got %swant %s", got, c.want)
		}
	}
	// On the console the lines below the record go with it.
	c, b := newTestLogger(t, Console{Layout: "msg error attrs", Errors: ErrorDetail})
	c.With(slog.Any("e", wrapped), slog.Any("error", wrapped)).Info(t.Context(), "m", slog.Any("e", io.EOF), slog.Any("error", io.ErrNoProgress))
	if got, want := b.String(), "m error=\"multiple Read calls return no data or error\" e=EOF\n    error      *errors.errorString\n    e          *errors.errorString\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestWithIsFrozen: a line whose keys repeat is written anew, and still shows
// what With was given as it was then.
func TestWithIsFrozen(t *testing.T) {
	for _, enc := range []Encoder{JSON{Layout: "attrs"}, Logfmt{Layout: "attrs"}, Console{Layout: "attrs"}} {
		l, b := newTestLogger(t, enc)
		m := map[string]any{"a": 1}
		n := &ByPointer{"x"}
		list := []int{1}
		w := l.With(slog.Any("m", m), slog.Any("list", &list), slog.Any("n", n), slog.Int("k", 1))
		w.Info(t.Context(), "m")
		m["a"], list[0] = 2, 2
		w.Info(t.Context(), "m", slog.Int("k", 1))
		lines := strings.SplitAfter(b.String(), "\n")
		if lines[0] != lines[1] || strings.Contains(lines[1], "2") {
			t.Errorf("%T:\n%s%s", enc, lines[0], lines[1])
		}
	}
}

// TestManyKeys: a thousand attributes, half of them twice, in a line.
func TestManyKeys(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	var attrs []slog.Attr
	for i := range 1000 {
		attrs = append(attrs, slog.Int("k"+itoa(i%500), i))
	}
	l.With(attrs[:700]...).Info(t.Context(), "m", attrs[600:]...)
	var got struct{ Attrs map[string]int }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got.Attrs) != 500 || got.Attrs["k7"] != 507 || got.Attrs["k499"] != 999 {
		t.Errorf("%v: %d keys: %.200s", err, len(got.Attrs), b.String())
	}
	checkKeys(t, b.Bytes())
}

// FuzzKeys: whatever keys are called and wherever they come from, each is
// once in a line that is valid and no longer than it may be.
func FuzzKeys(f *testing.F) {
	f.Add("a", "a", "a", "b", "v", uint16(0))
	f.Add("level", "error", "attrs.level", "service", "\x00\xff", uint16(600))
	f.Add("\xff", "\xfe", "g.h", "h", strings.Repeat("é\n", 300), uint16(700))
	f.Add("e.type", "e", "", "stack", "x y=z", uint16(0xffff))
	encoders := []Encoder{JSON{}, JSON{Layout: "level msg service error attrs:", Errors: ErrorDetail}, JSON{Layout: "msg attrs:labels"},
		Logfmt{}, Logfmt{Errors: ErrorDetail, Layout: "msg level error attrs:e"}, Console{}, Console{Errors: ErrorDetail, Layout: "attrs level:level msg:msg error"}}
	f.Fuzz(func(t *testing.T, k1, k2, k3, group, value string, size uint16) {
		for _, enc := range encoders {
			var b bytes.Buffer
			maxLine := max(int(size), 512)
			l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, Caller: LevelOff, MaxLine: maxLine, Stack: slog.LevelWarn,
				Extract: []func(context.Context, []slog.Attr) []slog.Attr{func(_ context.Context, dst []slog.Attr) []slog.Attr {
					return append(dst, slog.String(k2, value), slog.Any(k3, io.EOF))
				}}})
			ctx := ContextWith(t.Context(), slog.String(k1, value), slog.Group(k3, slog.Int(k2, 1)))
			w := l.With(slog.String(k1, "w"), slog.Any(k2, io.EOF), slog.Group(group, slog.Int(k1, 1)))
			for _, l := range []*Logger{l, w, w.WithGroup(group), w.WithGroup(group).With(slog.Int(k3, 1)).WithGroup(k3)} {
				for _, log := range []func(){
					func() {
						l.Info(ctx, value, slog.String(k3, value), slog.Int(k2, 2), slog.Any(k1, fmt.Errorf("%s: %w", value, io.EOF)))
					},
					func() {
						l.Warn(ctx, k1, slog.Group(k3, slog.Int(k1, 1), slog.String(k2, value)), slog.Group("", slog.Int(k1, 3)), slog.Any(group, userOf{value}))
					},
					func() {
						l.Info(t.Context(), k2, slog.Any(k1, map[string]any{k1: value, k2: 1}), slog.Any(k1, []string{value, k2}))
					},
				} {
					b.Reset()
					log()
					if b.Len() > maxLine {
						t.Fatalf("%#v: %d bytes of %d: %s", enc, b.Len(), maxLine, b.String())
					}
					if _, ok := enc.(JSON); ok {
						if !json.Valid(b.Bytes()) {
							t.Fatalf("%#v: not JSON: %s", enc, b.String())
						}
						checkKeys(t, b.Bytes())
					} else {
						checkText(t, fmt.Sprintf("%#v", enc), enc, b.String())
						checkTextKeys(t, b.String())
					}
				}
			}
		}
	})
}

// pair is an attribute of the model: a number, or the members of a group.
type pair struct {
	key     string
	number  float64
	members []pair
}

// model returns what a JSON reader gets for pairs, by the rule of
// TestEachKeyOnce.
func model(pairs []pair) map[string]any {
	m, groups := map[string]any{}, map[string][]pair{}
	for _, p := range pairs {
		if p.members == nil {
			m[p.key], groups[p.key] = p.number, nil
		} else if len(model(p.members)) > 0 { // a group without members is left out
			groups[p.key] = append(groups[p.key], p.members...)
			m[p.key] = model(groups[p.key])
		}
	}
	return m
}

// settled returns pairs with each key once.
func settled(pairs []pair) []pair {
	return pairsOf(model(pairs))
}

func pairsOf(m map[string]any) []pair {
	pairs := []pair{}
	for k, v := range m {
		if members, ok := v.(map[string]any); ok {
			pairs = append(pairs, pair{key: k, members: pairsOf(members)})
		} else {
			pairs = append(pairs, pair{key: k, number: v.(float64)})
		}
	}
	return pairs
}

// TestKeysAgainstAModel: in random sequences of With, WithGroup, contexts and
// calls with few keys, a JSON line holds what the rule says, and no line has a
// key twice.
func TestKeysAgainstAModel(t *testing.T) {
	keys := []string{"a", "b", "c", "g", "h", "level", "error", "k1", "k2", "a.b", "\xff", "\uFFFD", "customer"}
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		n := 0.0
		var attrs func(depth int) ([]slog.Attr, []pair)
		attrs = func(depth int) (list []slog.Attr, pairs []pair) {
			pairs = []pair{}
			for range rng.IntN(4) {
				key := keys[rng.IntN(len(keys))]
				if n++; depth == 3 || rng.IntN(3) > 0 {
					list = append(list, slog.Int(key, int(n)))
					pairs = append(pairs, pair{key: replaced(key), number: n})
					continue
				}
				inner, members := attrs(depth + 1)
				a := slog.Attr{Key: key, Value: slog.GroupValue(inner...)}
				if rng.IntN(4) == 0 {
					a.Value = slog.AnyValue(&groupValuer{a.Value})
				}
				if rng.IntN(4) == 0 {
					a.Key = ""
					pairs = append(pairs, members...)
				} else {
					pairs = append(pairs, pair{key: replaced(key), members: members})
				}
				list = append(list, a)
			}
			return list, pairs
		}
		var b, text bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: JSON{Layout: "attrs"}}, {Writer: &text, Encoder: Logfmt{}},
			{Writer: &text, Encoder: Console{TimeFormat: "-"}}, {Writer: io.Discard, Encoder: Custom{new(plainEncoder)}}}})
		ctx := t.Context()
		var top, inCtx, rest []pair
		var path []string
		within := func(pairs []pair) []pair {
			for i := len(path) - 1; i >= 0; i-- {
				pairs = []pair{{key: path[i], members: pairs}}
			}
			return pairs
		}
		for range rng.IntN(5) {
			list, pairs := attrs(0)
			switch rng.IntN(3) {
			case 0:
				ctx = ContextWith(ctx, list...)
				inCtx = append(inCtx, pairs...)
			case 1:
				l = l.With(list...)
				if len(path) == 0 {
					top = append(top, pairs...)
					continue
				}
				if pairs = within(pairs); len(model(pairs)) > 0 && rest == nil { // the Logger's group takes over what is beside it
					var joined []pair
					top = slices.DeleteFunc(top, func(p pair) bool {
						if p.key == path[0] && p.members == nil {
							joined = nil
						} else if p.key == path[0] {
							joined = append(joined, p.members...)
						}
						return p.key == path[0]
					})
					pairs = append([]pair{{key: path[0], members: append([]pair{}, joined...)}}, pairs...)
				}
				rest = append(rest, pairs...)
			case 2:
				key := keys[rng.IntN(len(keys))]
				l = l.WithGroup(key)
				path = append(path, replaced(key))
			}
		}
		list, pairs := attrs(0)
		l.Info(ctx, "m", list...)
		want := model(slices.Concat(settled(top), settled(inCtx), rest, within(pairs)))
		var got struct{ Attrs map[string]any }
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, b.String())
		}
		if fmt.Sprint(want) != fmt.Sprint(got.Attrs) {
			t.Fatalf("seed %d:\n got %v\nwant %v", seed, got.Attrs, want)
		}
		checkKeys(t, b.Bytes())
		for line := range strings.Lines(text.String()) {
			checkTextKeys(t, line)
		}
	}
}

type groupValuer struct{ group slog.Value }

func (v *groupValuer) LogValue() slog.Value { return v.group }

// plainEncoder is a format of the user's that looks at everything.
type plainEncoder struct{}

func (e *plainEncoder) AppendLine(dst []byte, r *Record) []byte {
	dst = append(dst, r.Message...)
	if r.TraceID != [16]byte{} {
		dst = append(dst, r.TraceID[:]...)
	}
	for a := range r.Attrs {
		dst = append(append(dst, ' '), a.Key...)
		if a.Value.Kind() == slog.KindGroup {
			for _, g := range a.Value.Group() {
				dst = append(dst, g.Key...)
			}
		}
	}
	return dst
}
