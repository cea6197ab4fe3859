package query

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// TestLens checks on generated lines that a lens leaves out no line that matches, and lines
// and blocks that do not; and that of the others, whole or in part, the same match and the
// fields that are needed have the same values.
func TestLens(t *testing.T) {
	t.Parallel()
	const seed = 20261127
	r := rand.New(rand.NewPCG(seed, 1))
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	matched, left, blocks, shorter := 0, 0, 0, 0
	var block, part []byte
	for round := range 60 {
		var lines []byte
		for range 20 {
			line := genLine(r)
			if round%2 == 0 {
				line = nestedLine(r)
			}
			lines = append(append(lines, line...), '\n')
		}
		block = enc.Append(block[:0], lines)
		for range 30 {
			expr := genExpr(r, 0)
			if round%2 == 0 {
				form := oneOf(r, "%s=%s", "%s~%s", "%s!=%s", "%s>%s", "%s in (%s, x1, x22)", "%s not in (%s, x1, x2)", `%s in (%s, i"X1", 5)`, `%s~i"%s"`, `%s!~w"%s"`, `%s in ("%s".."x9")`, `%s not in (x1*, "%s".."x9")`)
				expr = fmt.Sprintf(form, oneOf(r, "service", "trace_id", "attrs.a", "a.b", "a.b.c", "c"), plainValue(r))
				if r.IntN(3) == 0 {
					expr += oneOf(r, " ", " or ", " -") + oneOf(r, "a.b", "logger") + "=" + plainValue(r) + "*"
				}
			}
			q := mustParse(t, expr)
			if r.IntN(2) == 0 {
				q.fields = []field{resolve(oneOf(r, "service", "a", "a.b", "a.b.c", "http", "error.kind", "attrs", "msg"))}
			}
			l := &lens{root: q.root}
			if q.fields != nil {
				l.keep = q.keeps()
			}
			if part, err = l.unpack(part[:0], block, len(lines), columns.Range{}); err != nil {
				t.Fatal(err)
			}
			if len(part) == 0 {
				blocks++
				part = bytes.Repeat([]byte{'\n'}, bytes.Count(lines, []byte{'\n'}))
			}
			rest := part
			for line := range bytes.Lines(lines) {
				n := bytes.IndexByte(rest, '\n') + 1
				got := rest[:n]
				rest = rest[n:]
				matches := q.Match(line)
				switch {
				case len(line) == 1:
				case len(got) == 1:
					if left++; matches {
						t.Fatalf("seed %d: %s matches\n%s, which is left out", seed, expr, line)
					}
					continue
				case q.fields == nil && !bytes.Equal(got, line):
					t.Fatalf("seed %d: %q instead of %q", seed, got, line)
				case q.Match(got) != matches:
					t.Fatalf("seed %d: %s matches %v, but of\n%s%s", seed, expr, matches, line, got)
				case len(got) < len(line):
					shorter++
				}
				if matches {
					matched++
				}
				for _, f := range q.fields {
					if want := f.find(line); !bytes.Equal(f.find(got), want) {
						t.Fatalf("seed %d: %s is %q instead of %q in\n%s%s", seed, f.name(), f.find(got), want, line, got)
					}
				}
			}
			if len(rest) > 0 {
				t.Fatalf("seed %d: more lines: %q", seed, rest)
			}
		}
	}
	if matched < 1000 || left < 5000 || blocks < 50 || shorter < 2000 {
		t.Errorf("%d matched, %d lines and %d blocks were left out, %d lines are shorter: the generator proves little", matched, left, blocks, shorter)
	}
}

func oneOf(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func plainValue(r *rand.Rand) string { return fmt.Sprintf("x%d", r.IntN(60)) }

// nestedLine is a line in which a value may be inside an object, a list, or a key with a point.
func nestedLine(r *rand.Rand) []byte {
	v := func() string {
		return fmt.Sprintf(oneOf(r, "%q", "%q", "%q", "[%q]", `{"c":%q}`), oneOf(r, "", "x", `\"`)+plainValue(r))
	}
	return fmt.Appendf(nil, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","service":"%s","trace_id":"%s","attrs":{%s}}`,
		plainValue(r), plainValue(r), fmt.Sprintf(oneOf(r, `"a":{"b":%s}`, `"a.b":%s`, `"a":%s`, `"c":%s`, `"a":{"b.c":%s}`), v()))
}

// TestPacked finds one line by its trace id in packed segments, of one tenant and of several,
// with the same counts as by a search through all lines.
func TestPacked(t *testing.T) {
	for _, tenants := range []int{1, 3} {
		s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 100_000, Pack: true})
		const n = 6000
		for i := range n {
			attrs := ""
			if tenants > 1 {
				attrs = fmt.Sprintf(`"tenant":"t%d",`, i%tenants)
			}
			s.add(t, strings.Replace(testLine(i, "INFO", "shop"), `"attrs":{`, fmt.Sprintf(`"trace_id":"%032x","attrs":{%s"user":"u-%d",`, i*7919, attrs, i), 1))
		}
		waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) })
		_, base := serve(t, s, Options{})
		for _, i := range []int{0, 17, 3000, n - 1} {
			for _, q := range []string{fmt.Sprintf("trace_id=%032x", i*7919), fmt.Sprintf("user=u-%d level=info", i), fmt.Sprintf("trace_id=%032x or user=none", i*7919)} {
				resp, body, err := ask(t, base, "q", q)
				if err != nil || strings.Count(body, "\n") != 1 || !strings.Contains(body, fmt.Sprintf(`"user":"u-%d"`, i)) {
					t.Fatalf("%d tenants: %s: %v: %s", tenants, q, err, body)
				}
				_, all, err := ask(t, base, "q", fmt.Sprintf("%032x", i*7919), "from", "0")
				if err != nil || all != "" && all != body {
					t.Fatalf("%s, searched everywhere: %v: %s", q, err, all)
				}
				if tenants == 1 && resp.Trailer.Get("Rollway-Scanned") != fmt.Sprint(n) {
					t.Errorf("%s: %v", q, resp.Trailer)
				}
			}
		}
	}
}

// TestPrunedDamage asks over damaged folders with blocks left out and without: the lines and the
// gaps are the same.
func TestPrunedDamage(t *testing.T) {
	const n = 4000
	mem, dir := disktest.NewMem(), "/j"
	open := func() *journal.Journal {
		j, err := journal.Open(dir, journal.Options{Disk: mem, SegmentBytes: 200_000, MaxGroupBytes: 20_000, Pack: true})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	s := &store{Journal: open()}
	for i := range n {
		s.add(t, strings.Replace(testLine(i, "INFO", "shop"), `"attrs":{`, fmt.Sprintf(`"trace_id":"%032x","attrs":{"tenant":"t%d",`, i/100, i%3), 1))
	}
	waitFor(t, "packing", func() bool {
		return s.Stats().PackedSegments > 0 && s.Stats().PackedSegments >= uint64(s.Stats().Segments-1)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := mem.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(20261128, 1))
	gaps, left := 0, 0
	for round := range 60 {
		name := ""
		for name = files[r.IntN(len(files))].Name; !strings.HasSuffix(name, ".seg"); name = files[r.IntN(len(files))].Name {
		}
		path := dir + "/" + name
		whole, err := mem.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(whole)
		for range 1 + r.IntN(3) {
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		if r.IntN(4) == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		if err := mem.WriteFile(path, bad); err != nil {
			t.Fatal(err)
		}
		j := open()
		q := mustParse(t, fmt.Sprintf("trace_id=%032x", r.IntN(n/100+1)))
		found := func(pruned bool) (text string) {
			reader := j.NewReader(0)
			defer reader.Close()
			if pruned {
				q.configure(reader, nil)
			}
			for {
				f, ok, err := reader.TryNext()
				if gap := (*journal.Gap)(nil); errors.As(err, &gap) {
					text += gap.Error() + "\n"
					gaps++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					return text
				}
				if len(f.Lines) == 0 {
					left++
				}
				for line := range bytes.Lines(f.Lines) {
					if q.Match(bytes.TrimSuffix(line, []byte("\n"))) {
						text += string(line)
					}
				}
			}
		}
		if with, without := found(true), found(false); with != without {
			t.Fatalf("round %d: %s with %s damaged:\n%s\nwithout leaving out blocks:\n%s", round, q, name, with, without)
		}
		if err := errors.Join(j.Close(), mem.WriteFile(path, whole)); err != nil {
			t.Fatal(err)
		}
	}
	if gaps == 0 || left < 100 {
		t.Errorf("%d gaps, %d blocks were left out: that proves little", gaps, left)
	}
}
