package file

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones of the table, on every machine

	"github.com/rollway/rollway/internal/testkit"
)

func TestDue(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	testkit.OK(t, err)
	for _, c := range []struct {
		o        Options
		from, to string
	}{
		{Options{}, "2026-05-28T12:40:00Z", "0001-01-01T00:00:00Z"},
		{Options{Every: time.Hour}, "2026-05-28T12:40:00Z", "2026-05-28T13:00:00Z"},
		{Options{Every: time.Hour}, "2026-05-28T13:00:00Z", "2026-05-28T14:00:00Z"},
		{Options{Every: time.Hour}, "2026-05-28T23:59:59.999999999Z", "2026-05-29T00:00:00Z"},
		{Options{Every: 7 * time.Hour}, "2026-05-28T13:59:00Z", "2026-05-28T14:00:00Z"},
		{Options{Every: 7 * time.Hour}, "2026-05-28T22:00:00Z", "2026-05-29T00:00:00Z"},
		{Options{Every: 24 * time.Hour}, "2026-05-28T22:00:00Z", "2026-05-29T00:00:00Z"},
		{Options{Every: 7 * 24 * time.Hour}, "2026-05-28T22:00:00Z", "2026-06-01T00:00:00Z"}, // a Monday
		{Options{Every: 24 * time.Hour}, "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"},
		{Options{Every: 24 * time.Hour, Location: berlin}, "2026-05-28T22:30:00Z", "2026-05-29T22:00:00Z"},
		{Options{Every: 24 * time.Hour, Location: berlin}, "2026-03-29T00:30:00Z", "2026-03-29T22:00:00Z"}, // 23 hours long
		{Options{Every: 24 * time.Hour, Location: berlin}, "2026-10-25T00:30:00Z", "2026-10-25T23:00:00Z"}, // 25
		{Options{Every: 7 * 24 * time.Hour, Location: berlin}, "2026-05-28T22:00:00Z", "2026-05-31T22:00:00Z"},
		{Options{Every: time.Hour, Location: berlin}, "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		{Options{Every: time.Hour, Location: berlin}, "2026-10-25T00:59:00Z", "2026-10-25T01:00:00Z"},
	} {
		o, err := c.o.withDefaults()
		testkit.OK(t, err)
		from, err := time.Parse(time.RFC3339Nano, c.from)
		testkit.OK(t, err)
		if got := o.due(from).UTC().Format(time.RFC3339Nano); got != c.to {
			t.Errorf("every %v, %v: from %s due %s, want %s", o.Every, o.Location, c.from, got, c.to)
		}
	}
}

// The boundary is always ahead, at most one period, and the same for all times
// up to it.
func TestDueIsAhead(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	testkit.OK(t, err)
	for _, loc := range []*time.Location{time.UTC, berlin} {
		for _, every := range []time.Duration{time.Second, 7 * time.Minute, time.Hour, 5 * time.Hour, day, 3 * day, 7 * day} {
			o := Options{Every: every, Location: loc}
			at := time.Date(2026, 3, 27, 17, 3, 2, 1, loc)
			for range 1500 {
				due := o.due(at)
				if ahead := due.Sub(at); ahead <= 0 || ahead > every+time.Hour {
					t.Fatalf("every %v in %v: from %v due %v", every, loc, at, due)
				}
				if middle := at.Add(due.Sub(at) / 2); !o.due(middle).Equal(due) {
					t.Fatalf("every %v in %v: from %v due %v, but from %v due %v", every, loc, at, due, middle, o.due(middle))
				}
				if rotate, anew := o.overdue(due, due.Add(-1)); rotate || anew {
					t.Fatalf("every %v in %v: just before %v: rotate %v, anew %v", every, loc, due, rotate, anew)
				}
				if rotate, _ := o.overdue(due, due); !rotate {
					t.Fatalf("every %v in %v: not due at %v", every, loc, due)
				}
				at = due
			}
		}
	}
}

// A boundary that a wrong clock has left far ahead does not stop rotation.
func TestDueAfterClockWasSetBack(t *testing.T) {
	o := Options{Every: 24 * time.Hour, Location: time.UTC}
	wrong := time.Date(2038, 1, 19, 3, 14, 7, 0, time.UTC)
	rotate, anew := o.overdue(o.due(wrong), time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC))
	if rotate || !anew {
		t.Errorf("rotate %v, anew %v, want a new boundary", rotate, anew)
	}
}
