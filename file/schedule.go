package file

import "time"

const day = 24 * time.Hour

// due returns when to rotate a file whose latest line is from t: the first boundary after
// t. It is zero without rotation by time.
func (o Options) due(t time.Time) time.Time {
	t = t.In(o.Location)
	y, m, d := t.Date()
	midnight := time.Date(y, m, d+1, 0, 0, 0, 0, o.Location)
	var next time.Time
	switch {
	case o.Every > day:
		// By wall clock: the boundaries of UTC, read in the zone.
		wall := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		b := wall.Truncate(o.Every).Add(o.Every)
		next = time.Date(b.Year(), b.Month(), b.Day(), b.Hour(), b.Minute(), b.Second(), b.Nanosecond(), o.Location)
	case o.Every == day: // which may have 23 or 25 hours
		next = midnight
	case o.Every > 0:
		start := time.Date(y, m, d, 0, 0, 0, 0, o.Location)
		next = start.Add((t.Sub(start)/o.Every + 1) * o.Every)
		if next.After(midnight) {
			next = midnight
		}
	}
	return next
}

// overdue reports whether to rotate a file now that is due. anew means that due is too far
// in the future, as the clock was set back, and has to be computed again.
func (o Options) overdue(due, now time.Time) (rotate, anew bool) {
	if due.IsZero() {
		return false, false
	}
	if !now.Before(due) {
		return true, false
	}
	longest := 25 * time.Hour // a day on which the clocks go back
	if o.Every > day {
		longest = o.Every + time.Hour
	}
	return false, due.Sub(now) > longest
}
