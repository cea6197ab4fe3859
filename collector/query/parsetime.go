package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const expectedTime = `a time: 2026-05-28T12:40:00Z, 2026-05-28, "2026-05-28 12:40" (UTC), now, today, yesterday, or an age: 15m, -15m, 2h30m, 1d, "1h ago"`

// ParseTime reads a time as -since, -until and comparisons with time take it:
//
//	2026-05-28T12:40:00.5+02:00   RFC 3339, also with a space for the T
//	2026-05-28 12:40:07           without a zone, UTC
//	2026-05-28 12:40
//	2026-05-28                    midnight UTC
//	now, today, yesterday         the last two are midnights UTC
//	15m, -15m, 15m ago, 1d12h     that long before now; units w d h m s ms us µs ns
//
// The result is in UTC.
func ParseTime(s string, now time.Time) (time.Time, error) {
	t, _, err := parseTime(s, now)
	if err != nil {
		return time.Time{}, err
	}
	return t, nil
}

// layouts with the span that each leaves open. Parsing also takes a fraction
// behind the seconds.
var layouts = [...]struct {
	layout string
	span   time.Duration
}{
	{"2006-01-02", 24 * time.Hour},
	{"2006-01-02 15:04", time.Minute},
	{"2006-01-02 15:04Z07:00", time.Minute},
	{"2006-01-02 15:04:05", time.Second},
	{"2006-01-02 15:04:05Z07:00", time.Second},
}

// parseTime also returns the span that s names: a day for a date, a minute or a
// second for a clock time without smaller parts, otherwise 0.
func parseTime(s string, now time.Time) (time.Time, time.Duration, error) {
	now = now.UTC()
	midnight := now.Truncate(24 * time.Hour)
	trimmed := strings.TrimSpace(s)
	switch strings.ToLower(trimmed) {
	case "now":
		return now, 0, nil
	case "today":
		return midnight, 24 * time.Hour, nil
	case "yesterday":
		return midnight.Add(-24 * time.Hour), 24 * time.Hour, nil
	}
	if len(trimmed) > 10 && (trimmed[10] == 'T' || trimmed[10] == 't') {
		trimmed = trimmed[:10] + " " + trimmed[11:]
	}
	if n := len(trimmed); n > 10 && trimmed[n-1] == 'z' {
		trimmed = trimmed[:n-1] + "Z"
	}
	for _, l := range layouts {
		t, err := time.Parse(l.layout, trimmed)
		if err != nil {
			continue
		}
		if strings.ContainsAny(trimmed, ".,") {
			return t.UTC(), 0, nil
		}
		return t.UTC(), l.span, nil
	}
	age, ok := parseAge(trimmed)
	if !ok {
		return time.Time{}, 0, fmt.Errorf("found %s, expected %s", show(s), expectedTime)
	}
	return now.Add(-age), 0, nil
}

// parseAge reads 15m, -15m or "15m ago".
func parseAge(s string) (time.Duration, bool) {
	s = strings.TrimPrefix(s, "-")
	if rest, ok := strings.CutSuffix(s, "ago"); ok {
		s = strings.TrimRight(rest, " ")
	}
	total := 0.0
	if s == "" {
		return 0, false
	}
	for s != "" {
		digits := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if digits <= 0 {
			return 0, false
		}
		n, err := strconv.ParseFloat(s[:digits], 64)
		if err != nil {
			return 0, false
		}
		s = s[digits:]
		letters := strings.IndexFunc(s, func(r rune) bool { return r == '.' || '0' <= r && r <= '9' })
		if letters < 0 {
			letters = len(s)
		}
		unit, ok := ageUnits[s[:letters]]
		if !ok {
			return 0, false
		}
		total += n * float64(unit)
		s = s[letters:]
	}
	if total >= math.MaxInt64 {
		return 0, false
	}
	return time.Duration(total), true
}

var ageUnits = map[string]time.Duration{
	"w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second,
	"ms": time.Millisecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "ns": time.Nanosecond,
}
