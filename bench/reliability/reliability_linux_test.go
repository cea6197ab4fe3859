package reliability

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/internal/testkit"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// settings are those of a test: one try of each fault, a few kills. A call has
// hung after a minute: the machine may have much else to do.
func settings(t *testing.T) Settings {
	return Settings{Dir: t.TempDir(), Tries: 1, Kills: 3, Others: 2, Limit: time.Minute, Jobs: 4, Seed: 1}
}

// TestOwnWriters puts each of our writers through each fault and compares the
// outcome with what it promises.
func TestOwnWriters(t *testing.T) {
	kills := testkit.Rounds(t, testkit.Kills, 3, 30)
	for _, f := range Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			if what := f.Missing(); what != "" {
				testkit.Missing(t, what)
			}
			s := settings(t)
			s.Faults, s.Kills = []Fault{f}, kills
			for _, w := range Writers() {
				if w.Own {
					s.Writers = append(s.Writers, w)
				}
			}
			tries, err := Run(io.Discard, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, try := range tries {
				if err := try.Unexpected(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTheKitNotices: rivals that are known to lose, tear, hang and die do so
// here. If they did not, the kit would find nothing in ours either.
func TestTheKitNotices(t *testing.T) {
	testkit.NoRace(t, "rivals have races of their own")
	for name, c := range map[string]struct {
		fault, writer string
		noticed       func(Try) bool
	}{
		"loss":              {errorOnce, "zerolog diode", func(x Try) bool { return x.Silent > 0 }},
		"loss with error":   {errorOnce, "zap BufferedWriteSyncer", func(x Try) bool { return x.Told > 0 && x.Silent == 0 && x.Refused > 0 }},
		"counted loss":      {errorsForEver, Heap, func(x Try) bool { return x.Counted > 0 && x.Silent == 0 }},
		"death":             {errorOnce, "mutex + bufio", func(x Try) bool { return x.Dead }},
		"torn line":         {shortError, "phuslu AsyncWriter", func(x Try) bool { return x.Torn > 0 }},
		"torn by a kill":    {killInWrite, "mutex + bufio", func(x Try) bool { return x.Torn > 0 && x.Silent > 0 }},
		"crash":             {panics, "zerolog diode", func(x Try) bool { return x.Crashed }},
		"loss by a kill":    {killRandom, Heap, func(x Try) bool { return x.Silent > 0 }},
		"a stalled process": {closeBlocks, "phuslu AsyncWriter", func(x Try) bool { return x.Hung }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t)
			s.Limit = 5 * time.Second // of rivals that hang
			var fault Fault
			for _, f := range Faults() {
				if f.Name == c.fault {
					fault = f
				}
			}
			for seed := range uint64(20) { // a kill may come when nothing is on its way
				try, err := s.Try(fault, Writer{Name: c.writer, Own: c.writer == Heap}, seed)
				if err != nil {
					t.Fatal(err)
				}
				if c.noticed(try) {
					return
				}
				t.Logf("seed %d: %+v", seed, try)
			}
			t.Error("not noticed in 20 tries")
		})
	}
}
