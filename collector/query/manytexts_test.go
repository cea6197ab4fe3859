package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/jsonline"
)

// quotedOr asks for one of texts.
func quotedOr(texts []string) string {
	var b strings.Builder
	for i, text := range texts {
		if i > 0 {
			b.WriteString(" or ")
		}
		b.Write(jsonline.AppendString(nil, text))
	}
	return b.String()
}

// Many texts, which begin, end and hold each other, are found where a search for
// one after the other finds them, and each of them is known to be there.
func TestManyTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	word := func(most int) string {
		b := make([]byte, 1+rng.IntN(most))
		for i := range b {
			b[i] = "ab1\"\n\xc3"[rng.IntN(5)]
		}
		return string(b)
	}
	line := func() []byte {
		b := jsonline.AppendString([]byte(`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":`), word(12))
		b = fmt.Appendf(b, `,"attrs":{"n":%d1%d,"true":true,"list":[`, 1+rng.IntN(99), rng.IntN(100))
		b = jsonline.AppendString(b, word(30))
		b = append(b, `,{"k":`...)
		b = jsonline.AppendString(b, word(5))
		return append(b, "}]}}\n"...)
	}
	held := 0
	for range 100 {
		texts := make([]string, fewTexts+1+rng.IntN(60))
		for i := range texts {
			texts[i] = word(6)
		}
		q := mustParse(t, quotedOr(texts))
		if q.texts.many == nil {
			t.Fatalf("%d texts are searched for one by one", len(texts))
		}
		for range 20 {
			line := line()
			s := scan{q: q, line: line, pending: q.terms}
			s.run()
			var m map[string]any
			dec := json.NewDecoder(bytes.NewReader(line))
			dec.UseNumber()
			if err := dec.Decode(&m); err != nil {
				t.Fatal(err)
			}
			for i, kid := range q.root.kids {
				want := slowEval(kid, m)
				if want {
					held++
				}
				if s.pending > 0 && s.hits.has(kid.index) != want {
					t.Fatalf("text %d, %q, is found: %v; want %v in %s", i, kid.term.text, !want, want, line)
				}
			}
			if got, want := q.Match(line), slowMatch(q, line); got != want {
				t.Fatalf("%v, want %v for %s in %s", got, want, q, line)
			}
		}
	}
	if held == 0 {
		t.Error("no text is in any line")
	}
}

// Texts as long and as many as there may be, all ending at each byte of a
// line, are passed once.
func TestManyTextsInEachOther(t *testing.T) {
	var texts []string
	for n, size := 1, 0; ; n++ {
		if size += n + len(`"" or `); size > MaxLength {
			break
		}
		texts = append(texts, strings.Repeat("a", n))
	}
	q := mustParse(t, quotedOr(texts))
	line := []byte(`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"` + strings.Repeat("a", len(texts)-1) + "b" + strings.Repeat("a", len(texts)-1) + `"}`)
	s := scan{q: q, line: line, pending: q.terms}
	s.run()
	if s.pending != 1 {
		t.Errorf("%d of %d texts are not found, want the longest", s.pending, len(texts))
	}
}

// The automaton of the largest expression stays within a few MiB.
func TestManyTextsMemory(t *testing.T) {
	for _, texts := range [][]string{
		{strings.Repeat("a", 7000), "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"},
		strings.Split(strings.TrimSuffix(strings.Repeat("x,", 512), ","), ","),
	} {
		m := mustParse(t, quotedOr(texts)).texts.many
		if n := len(m.found); n > MaxLength+1 || len(m.next) != n*m.classes || len(m.next) > (MaxLength+1)*257 {
			t.Errorf("%d states, %d classes, %d transitions", n, m.classes, len(m.next))
		}
	}
}
