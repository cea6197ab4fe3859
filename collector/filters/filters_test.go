package filters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// excluded returns the frames that do not pass t.
func excluded(t *testing.T, section []byte, test *Test) Frames {
	t.Helper()
	frames, err := Excluded(bytes.NewReader(section), int64(len(section)), test)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// end ends a frame, as if it had a mebibyte of lines.
func end(b *Builder, first uint64) Frame {
	b.bytes += 1 << 20
	return b.End(first)
}

func newBuilder(t testing.TB) *Builder {
	b, err := NewBuilder()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// add adds a line, and each value of its members.
func add(b *Builder, line string) {
	b.Lines(len(line))
	b.Text([]byte(line))
	for w := jsonwalk.Members([]byte(line), 0); w.Next(); {
		b.Value(w.RawValue())
	}
}

// scalars returns the texts of all scalars inside of a value.
func scalars(v any) (list []string) {
	switch v := v.(type) {
	case []any:
		for _, v := range v {
			list = append(list, scalars(v)...)
		}
	case map[string]any:
		for _, v := range v {
			list = append(list, scalars(v)...)
		}
	case nil:
		list = append(list, "null")
	default:
		list = append(list, fmt.Sprint(v))
	}
	return list
}

// TestKeepsWhatMatches: a frame that has a text or a value passes the test for it.
func TestKeepsWhatMatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "Z", "7", "0", "-", " ", "é", "世", "\"", "\\", "\n", "\t", "\u2028", "dead", "lock", "code 4"}
	text := func() string {
		s := ""
		for range rng.IntN(20) {
			s += pieces[rng.IntN(len(pieces))]
		}
		return s
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch rng.IntN(8) {
		case 0:
			return rng.IntN(1000)
		case 1:
			return rng.Float64() * 100
		case 2:
			return rng.IntN(2) == 0
		case 3:
			return nil
		case 4:
			if depth > 0 {
				return map[string]any{text(): value(depth - 1), "k": value(depth - 1)}
			}
		case 5:
			if depth > 0 {
				return []any{value(depth - 1), value(depth - 1)}
			}
		}
		return text()
	}
	b := newBuilder(t)
	for _, frames := range []int{2, 64, 65} {
		var firsts []uint64
		has, gathered := make([][]string, frames), make([]Frame, frames)
		first := uint64(rng.IntN(3))
		for i := range frames {
			for range 1 + rng.IntN(2) {
				v := map[string]any{"msg": text(), "v": value(2), "w": value(3)}
				line, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				add(b, string(line))
				has[i] = append(has[i], scalars(v)...)
			}
			gathered[i] = end(b, first)
			firsts = append(firsts, first)
			first += 1 + rng.Uint64N(1000)
		}
		section := b.Append(nil)
		pruned := 0
		for i, texts := range has {
			for _, s := range texts {
				from := rng.IntN(len(s) + 1)
				part := s[from:][:rng.IntN(len(s)-from+1)]
				for _, test := range []*Test{Text(part), Value(s), All(Text(part), Value(s)), Any(Text("no such text"), Value(s))} {
					out := excluded(t, section, test)
					if pruned += len(out); slices.Contains(out, firsts[i]) {
						t.Fatalf("frame %d of %d is excluded, which has %q and its part %q", i, frames, s, part)
					}
					for k := range gathered {
						if passes := gathered[k].Passes(test); !passes && k == i || passes && slices.Contains(out, firsts[k]) {
							t.Fatalf("frame %d of %d, before it is stored, passes %v for %q and its part %q of frame %d", k, frames, passes, s, part, i)
						}
					}
				}
			}
		}
		if pruned == 0 {
			t.Errorf("of %d frames nothing was excluded", frames)
		}
	}
}

// TestExcludes: what is in one frame alone leaves few others.
func TestExcludes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := newBuilder(t)
	var ids []string
	for i := range 64 {
		for range 600 {
			ids = append(ids, fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()))
			add(b, fmt.Sprintf(`{"msg":"request of user %d took %d ms","trace":%q,"n":%d}`, rng.IntN(1000), rng.IntN(1e6), ids[len(ids)-1], rng.IntN(1e6)))
		}
		add(b, fmt.Sprintf(`{"msg":"restored archive %s from storage"}`, strings.Repeat(string(rune('g'+i%20)), 3+i)))
		end(b, uint64(i))
	}
	section := b.Append(nil)
	if n := len(section) / 64; n > 8<<10 {
		t.Errorf("a frame takes %d bytes", n)
	}
	left := 0
	for i := range 640 {
		left += 63 - len(excluded(t, section, Value(ids[i*60])))
	}
	if left > 640*63/20 {
		t.Errorf("a value leaves %.1f %% of the frames that do not have it", 100*float64(left)/640/63)
	}
	for text, most := range map[string]int{"restored": 64, "no such words": 0, "gggg": 4, "archive hhhh": 4, "took": 64} {
		if left := 64 - len(excluded(t, section, Text(text))); left > most {
			t.Errorf("%q leaves %d frames, want at most %d", text, left, most)
		}
	}
}

// TestNumbers: numbers that are equal are one value.
func TestNumbers(t *testing.T) {
	b := newBuilder(t)
	long := "1" + strings.Repeat("0", 100)
	for i, n := range []string{"100", "1e2", "1.00E+2", `"100"`, "-0", long} {
		add(b, `{"n":`+n+`}`)
		end(b, uint64(i))
	}
	section := b.Append(nil)
	for text, want := range map[string]Frames{
		"100": {4, 5}, "1e2": {4, 5}, "100.0": {4, 5}, "0": {0, 1, 2, 3, 5}, "0.0": {0, 1, 2, 3, 5}, "1e100": {0, 1, 2, 3, 4}, long: {0, 1, 2, 3, 4}, "101": {0, 1, 2, 3, 4, 5},
	} {
		if out := excluded(t, section, Value(text)); !slices.Equal(out, want) {
			t.Errorf("%s excludes %v, want %v", text, out, want)
		}
	}
}

// TestUnknown: a frame with too many values has any, and a value that is too long any frame.
func TestUnknown(t *testing.T) {
	b := newBuilder(t)
	for i := range 5 {
		for n := range 1 + i/4*maxValues*2 {
			add(b, fmt.Sprintf(`{"n":%d}`, n))
		}
		end(b, uint64(i))
	}
	section := b.Append(nil)
	if out := excluded(t, section, Value("no such value")); !slices.Equal(out, Frames{0, 1, 2, 3}) {
		t.Errorf("excluded %v", out)
	}
	for _, test := range []*Test{Value(strings.Repeat("x", maxValue+1)), Text("ab"), nil, All(), All(nil), Any(Text("no such text"), nil)} {
		if out := excluded(t, section, test); out != nil {
			t.Errorf("%+v excludes %v", test, out)
		}
	}
	for i := range 10 {
		add(b, fmt.Sprintf(`{"msg":"%d"}`, i))
		b.End(uint64(i))
	}
	if section := b.Append(nil); section != nil {
		t.Errorf("filters of %d bytes for ten lines", len(section))
	}
}

// TestDamage: a damaged section excludes what a sound one does, or nothing.
func TestDamage(t *testing.T) {
	b := newBuilder(t)
	for i := range 5 {
		add(b, fmt.Sprintf(`{"msg":"word%d in here"}`, i))
		end(b, uint64(i))
	}
	section := b.Append(nil)
	test := All(Text("word3"), Value("word3 in here"))
	want := excluded(t, section, test)
	failed := 0
	for at := range section {
		bad := slices.Clone(section)
		bad[at] ^= 1 << (at % 8)
		out, err := Excluded(bytes.NewReader(bad), int64(len(bad)), test)
		if err == nil && !slices.Equal(out, want) || err != nil && out != nil {
			t.Fatalf("byte %d changed: %v, %v", at, out, err)
		}
		if err != nil {
			failed++
		}
	}
	for n := range section {
		if _, err := Excluded(bytes.NewReader(section[:n]), int64(n), test); n > 0 && err == nil {
			t.Fatalf("%d of %d bytes are enough", n, len(section))
		}
	}
	if failed == 0 {
		t.Error("no damage was found")
	}
}

func FuzzExcluded(f *testing.F) {
	b := newBuilder(f)
	for i := range 4 {
		add(b, `{"msg":"some text"}`)
		end(b, uint64(i))
	}
	f.Add(b.Append(nil))
	f.Fuzz(func(t *testing.T, section []byte) {
		_, _ = Excluded(bytes.NewReader(section), int64(len(section)), All(Text("some"), Value("some text")))
	})
}
