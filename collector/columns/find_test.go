package columns

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestFind compares what is found in columns with a search through the values, for texts whose
// pieces and variables meet in all ways.
func TestFind(t *testing.T) {
	t.Parallel()
	const seed = 20261127
	r := rand.New(rand.NewPCG(seed, 2))
	word := func() string {
		kinds := []string{"load", "of", "x", "ms", "v", "user", " ", "-", "=", "é", `\n`, ""}
		switch r.IntN(4) {
		case 0:
			return fmt.Sprint(r.IntN(120))
		case 1:
			return fmt.Sprintf("%04x", r.IntN(1<<16))
		}
		return kinds[r.IntN(len(kinds))]
	}
	enc, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var b Block
	found, texts := 0, 0
	for range 150 {
		var templates [][]string
		for range 1 + r.IntN(4) {
			var parts []string
			for range 1 + r.IntN(8) {
				parts = append(parts, word())
			}
			templates = append(templates, parts)
		}
		var lines []byte
		var values []string
		for range 40 {
			parts := templates[r.IntN(len(templates))]
			value := ""
			for _, p := range parts {
				if p != "" && p[0]-'0' <= 9 {
					p = word()
				}
				value += p
			}
			values = append(values, `"`+value+`"`)
			lines = fmt.Appendf(lines, "{\"n\":%d,\"m\":%s}\n", r.IntN(9), values[len(values)-1])
		}
		block := enc.Append(nil, lines)
		if err := b.Open(block, len(lines)); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			from := values[r.IntN(len(values))]
			at := r.IntN(len(from))
			needles := [][]byte{[]byte(from[at : at+1+r.IntN(len(from)-at)])}
			if r.IntN(3) == 0 {
				needles = append(needles, []byte(word()+"7"))
			}
			out, within := b.Rows(), Rows(nil)
			if r.IntN(2) == 0 {
				within = b.Rows()
				for i := range values {
					if r.IntN(3) == 0 {
						within.add(i)
					}
				}
			}
			if err := b.Find(out, func(path string) *Matcher {
				if path != "m\x00" {
					return nil
				}
				return &Matcher{Any: needles, Within: within}
			}); err != nil {
				t.Fatal(err)
			}
			if c := &b.columns[1]; c.form == formTexts {
				texts++
			}
			for i, v := range values {
				if within != nil && !within.Has(i) {
					continue
				}
				want := bytes.Contains([]byte(v), needles[0]) || len(needles) > 1 && bytes.Contains([]byte(v), needles[1])
				if out.Has(i) != want {
					t.Fatalf("seed %d: %q in %s: found %v", seed, needles, v, !want)
				}
				if want {
					found++
				}
			}
		}
		if out, err := b.AppendRows(nil, nil, nil); err != nil || !bytes.Equal(out, lines) {
			t.Fatalf("after a search: %v", err)
		}
	}
	if found < 10000 || texts < 500 {
		t.Errorf("%d found, %d searches of texts: the generator proves little", found, texts)
	}
}
