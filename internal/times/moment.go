package times

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Expected says for an error message what ParseMoment takes.
const Expected = `a time: 2026-05-28T12:40:00Z, 2026-05-28, "2026-05-28 12:40" (UTC), now, today, yesterday, or an age: 15m, -15m, 2h30m, 1d, "1h ago"`

// momentLayouts are those of ParseMoment, with the span that each leaves open. Parsing
// takes a fraction after the seconds too.
var momentLayouts = [...]struct {
	layout string
	span   time.Duration
}{
	{"2006-01-02", 24 * time.Hour},
	{"2006-01-02 15:04", time.Minute},
	{"2006-01-02 15:04Z07:00", time.Minute},
	{"2006-01-02 15:04:05", time.Second},
	{"2006-01-02 15:04:05Z07:00", time.Second},
}

// ParseMoment reads a time as people write it in a query:
//
//	2026-05-28T12:40:00.5+02:00   RFC 3339, also with a space for the T
//	2026-05-28 12:40:07           without a zone, UTC
//	2026-05-28 12:40
//	2026-05-28                    midnight UTC
//	now, today, yesterday         the last two are midnights UTC
//	15m, -15m, 15m ago, 1d12h     that long before now; units w d h m s ms us µs ns
//
// The result is in UTC. span is what s leaves open: a day for a date, a minute or a
// second for a time of day without smaller parts, otherwise 0.
func ParseMoment(s string, now time.Time) (t time.Time, span time.Duration, ok bool) {
	now = now.UTC()
	midnight := now.Truncate(24 * time.Hour)
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "now":
		return now, 0, true
	case "today":
		return midnight, 24 * time.Hour, true
	case "yesterday":
		return midnight.Add(-24 * time.Hour), 24 * time.Hour, true
	}
	if len(s) > 10 && (s[10] == 'T' || s[10] == 't') {
		s = s[:10] + " " + s[11:]
	}
	if before, zulu := strings.CutSuffix(s, "z"); zulu {
		s = before + "Z"
	}
	for _, l := range momentLayouts {
		t, err := time.Parse(l.layout, s)
		if err != nil {
			continue
		}
		if strings.ContainsAny(s, ".,") {
			return t.UTC(), 0, true
		}
		return t.UTC(), l.span, true
	}
	age, ok := parseAge(s)
	return now.Add(-age), 0, ok
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
