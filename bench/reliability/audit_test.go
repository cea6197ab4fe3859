package reliability

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/rollway/rollway/bench/internal/lines"
)

type fixedStates map[[2]int]byte

func (s fixedStates) get(producer, line int) byte { return s[[2]int{producer, line}] }

// TestAuditNotices: an audit that finds nothing would be worth nothing.
func TestAuditNotices(t *testing.T) {
	states := fixedStates{{0, 0}: acked, {0, 1}: acked, {0, 2}: calling, {1, 0}: acked, {1, 1}: refused}
	line := func(producer, i int) []byte { return lines.Append(nil, lineBytes, producer, i) }
	good := slices.Concat(line(0, 0), line(1, 0), line(0, 1))
	notice := []byte(`{"time":"2026-11-21T08:00:00Z","level":"WARN","msg":"rollway: 3 lines dropped"}` + "\n")
	base := Try{Acked: 3, Refused: 1, Open: 1, Found: 3}
	with := func(change func(*Try)) Try {
		t := base
		change(&t)
		return t
	}
	for name, c := range map[string]struct {
		content []byte
		padded  bool
		want    Try
	}{
		"good":          {good, false, base},
		"with a notice": {slices.Concat(line(0, 0), notice, line(1, 0), line(0, 1)), false, base},
		"in a call":     {slices.Concat(good, line(0, 2)), false, with(func(t *Try) { t.Found++ })},
		"refused":       {slices.Concat(good, line(1, 1)), false, with(func(t *Try) { t.Found++; t.Unasked++ })},
		"lost":          {good[lineBytes:], false, with(func(t *Try) { t.Found--; t.Silent++ })},
		"twice":         {slices.Concat(good, line(0, 1)), false, with(func(t *Try) { t.Duplicated++ })},
		"out of order":  {slices.Concat(line(0, 1), line(0, 0), line(1, 0)), false, with(func(t *Try) { t.Reordered++ })},
		"torn at end":   {good[:len(good)-1], false, with(func(t *Try) { t.Found--; t.Silent++; t.Torn++ })},
		"glued":         {slices.Concat(line(0, 0)[:100], line(1, 0), line(0, 1)), false, with(func(t *Try) { t.Found -= 2; t.Silent += 2; t.Torn++ })},
		"never written": {slices.Concat(good, line(1, 7)), false, with(func(t *Try) { t.Torn++ })},
		"padded":        {slices.Concat(line(0, 0)[:lineBytes-1], []byte("  \n\n"), line(1, 0), line(0, 1)), true, base},
		"zeros":         {append(slices.Clone(good), make([]byte, 300)...), false, with(func(t *Try) { t.Torn++ })},
	} {
		var got Try
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := got.audit(path, c.padded, states, 2, 10); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLossesAreSorted(t *testing.T) {
	for _, c := range []struct {
		lost, counted uint64
		told          bool
		want          Try
	}{
		{10, 0, false, Try{Silent: 10}},
		{10, 10, false, Try{Counted: 10}},
		{10, 25, true, Try{Counted: 10}}, // a count that is too high hides nothing else
		{10, 4, false, Try{Counted: 4, Silent: 6}},
		{10, 4, true, Try{Counted: 4, Told: 6}},
		{0, 0, true, Try{}},
	} {
		got := Try{Silent: int(c.lost)}
		got.settle(c.counted, c.told)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestUnexpectedNotices(t *testing.T) {
	good := Try{Fault: errorOnce, Writer: Heap, Acked: 100, Found: 100, Ledgers: []Ledger{{Accepted: 100, Written: 100}}}
	killed := Try{Fault: killRandom, Writer: Sharded, Acked: 100, Found: 90, Silent: 10, Late: 2, Ledgers: []Ledger{{Accepted: 2, Written: 2}}}
	recovered := Try{Fault: errorsForEver, Writer: Persisted, Acked: 100, Found: 100, Late: 1, Ledgers: []Ledger{{Accepted: 99, Written: 60, Dropped: 39, Shutdown: 39}, {Accepted: 40, Recovered: 39, Written: 40}}}
	dropped := Try{Fault: errorsForEver, Writer: Sharded, Acked: 100, Found: 61, Counted: 39, Late: 1, Ledgers: []Ledger{{Accepted: 99, Written: 60, Dropped: 30, Shutdown: 30, Pending: 9}, {Accepted: 1, Written: 1}}}
	for _, try := range []Try{good, killed, recovered, dropped} {
		if err := try.Unexpected(); err != nil {
			t.Fatal(err)
		}
	}
	with := func(l ...Ledger) func(*Try) { return func(t *Try) { t.Ledgers = l } }
	for name, change := range map[string]func(*Try){
		"loss":            func(t *Try) { t.Silent = 1 },
		"loss with error": func(t *Try) { t.Told = 1 },
		"drops":           func(t *Try) { t.Counted = 1 },
		"torn":            func(t *Try) { t.Torn = 1 },
		"twice":           func(t *Try) { t.Duplicated = 1 },
		"order":           func(t *Try) { t.Reordered = 1 },
		"refused":         func(t *Try) { t.Refused = 1 },
		"unasked":         func(t *Try) { t.Unasked = 1 },
		"thrown":          func(t *Try) { t.Thrown = 1 },
		"hung":            func(t *Try) { t.Hung = true },
		"dead":            func(t *Try) { t.Dead = true },
		"crash":           func(t *Try) { t.Crashed = true },
		"nothing done":    func(t *Try) { t.Acked = 0 },
		"kill, heap":      func(t *Try) { *t = killed; t.Writer, t.Silent = Heap, slabLines+1 },
		"kill, persisted": func(t *Try) { *t = killed; t.Writer, t.Silent = Persisted, 1 },
		"kill, shards":    func(t *Try) { *t = killed; t.Silent = shardLines + 1 },
		"kill, direct":    func(t *Try) { t.Fault, t.Writer, t.Silent = killInWrite, Direct, 1 },
		"no ledger":       with(),
		"a sum":           with(Ledger{Accepted: 100, Written: 99}),
		"accepted":        with(Ledger{Accepted: 101, Written: 101}),
		"written":         with(Ledger{Accepted: 100, Written: 99, Dropped: 1}),
		"pending":         with(Ledger{Accepted: 100, Written: 99, Pending: 1}),
		"late":            func(t *Try) { *t = killed; t.Ledgers = []Ledger{{Accepted: 3, Written: 3}} },
		"one of two":      func(t *Try) { *t = recovered; t.Ledgers = t.Ledgers[:1] },
		"recovered":       func(t *Try) { *t = recovered; t.Counted = 1 },
		"reason": func(t *Try) {
			*t = dropped
			t.Ledgers = []Ledger{{Accepted: 99, Written: 60, Dropped: 30, Shutdown: 29, Pending: 9}, t.Ledgers[1]}
		},
		"count too high": func(t *Try) { *t = dropped; t.Counted = 38 },
	} {
		bad := good
		change(&bad)
		if bad.Unexpected() == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
