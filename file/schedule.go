package file

import "time"

// day is the longest interval that begins anew at midnight.
const day = 24 * time.Hour

// due returns when a file whose latest line is of t is to be rotated: the first
// boundary after t. It is zero without rotation by time.
func (o Options) due(t time.Time) time.Time {
	t = t.In(o.Location)
	y, m, d := t.Date()
	midnight := time.Date(y, m, d+1, 0, 0, 0, 0, o.Location)
	var next time.Time
	switch {
	case o.Every > day:
		// By the clock on the wall: the boundaries of UTC, read in the zone.
		wall := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		b := wall.Truncate(o.Every).Add(o.Every)
		next = time.Date(b.Year(), b.Month(), b.Day(), b.Hour(), b.Minute(), b.Second(), b.Nanosecond(), o.Location)
	case o.Every > 0:
		start := time.Date(y, m, d, 0, 0, 0, 0, o.Location)
		next = start.Add((t.Sub(start)/o.Every + 1) * o.Every)
		if next.After(midnight) {
			next = midnight
		}
	}
	if o.Daily && (next.IsZero() || midnight.Before(next)) {
		next = midnight
	}
	return next
}

// overdue reports whether due is a boundary to act on at now. A clock that was
// set back may have left one that now is too far from: then it is not, and due
// has to be found anew.
func (o Options) overdue(due, now time.Time) (rotate, anew bool) {
	if due.IsZero() {
		return false, false
	}
	if !now.Before(due) {
		return true, false
	}
	longest := 25 * time.Hour // a day on which the clocks go back
	if o.Every > day && !o.Daily {
		longest = o.Every + time.Hour
	}
	return false, due.Sub(now) > longest
}
