package integration

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/rollway/rollway/rollwaytest"
)

// The contract of a line writer on every combination. With a failover it is run
// on the road to that, while the destination fails for ever.
func TestLineWriter(t *testing.T) {
	for _, c := range combinations() {
		if c.drops {
			continue // the suite is for writers that lose nothing
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{
				LongLine: c.longLine,
				Virtual:  c.virtual,
				Open: func(t *testing.T) *rollwaytest.Instance {
					r := c.open(t)
					last := len(r.ends) - 1
					for _, g := range r.gates[:last] {
						g.fail()
					}
					in := &rollwaytest.Instance{
						Writer:    r.head,
						Keeps:     c.keeps,
						Delivered: r.ends[last].delivered,
						Midway:    r.ends[last].midway,
						Ledger:    r.ledger,
						Stall:     r.gates[last].stall,
						Fail:      r.gates[last].fail,
						Heal:      r.gates[last].heal,
						Calls:     r.gates[last].called,
						Panic:     r.gates[last].panicAlways,
						FailSync:  r.gates[last].failSync,
					}
					if strings.Contains(c.name, "write-through") {
						in.Writer = warns{r.head}
					}
					return in
				},
			})
		})
	}
}

// warns is a writer that gets every line as a warning.
type warns struct{ *head }

func (w warns) Write(p []byte) (int, error) { return w.WriteLevel(slog.LevelInfo, p) }

func (w warns) WriteLevel(_ slog.Level, p []byte) (int, error) {
	return w.head.WriteLevel(slog.LevelWarn, p)
}
