package rollway

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/rollway/rollway/internal/levels"
)

// The levels of slog, and three more. A level between two of them is written as
// the lower name and the distance: WARN+1.
const (
	LevelTrace = levels.Trace    // -8
	LevelDebug = slog.LevelDebug // -4
	LevelInfo  = slog.LevelInfo  // 0
	LevelWarn  = slog.LevelWarn  // 4
	LevelError = slog.LevelError // 8
	LevelPanic = levels.Panic    // 10
	LevelFatal = levels.Fatal    // 12

	// LevelOff is above every level: an Output with it takes nothing.
	LevelOff slog.Level = math.MaxInt32

	lowestLevel slog.Level = math.MinInt32
)

// Levels holds the lowest level that is logged, by logger name, and can be changed
// while Loggers are in use. It is safe for concurrent use. Several Loggers may share
// one. The zero value is info for all.
//
// The text form is a list of rules: info,db=debug,db.pool.*=trace. A rule without a
// name applies to all loggers, db to the logger of that name, db.* to that one and
// all below it, such as db.pool. The rule with the longest matching name wins. Levels
// are the names of package rollway in any case, with an optional distance as in
// warn+1, and off.
type Levels struct {
	mu    sync.Mutex
	rules []levelRule                        // guarded by mu; longest pattern first
	gates map[gateKey]weak.Pointer[nameGate] // guarded by mu; of Loggers in use
}

// gateKey identifies a gate.
type gateKey struct {
	name  string
	floor slog.Level // the lowest level that the outputs take
	below bool       // for the names below it too: the lowest level of all
}

type levelRule struct {
	name  string // "" for all
	below bool   // also for names below it
	level slog.Level
}

func (r *levelRule) pattern() string {
	if r.below {
		return r.name + ".*"
	}
	return r.name
}

// nameGate is the gate of all Loggers with one key. (Without the key it would be so
// small that the runtime puts several into one block, and frees none before all.)
type nameGate struct {
	slog.LevelVar
	key gateKey
}

// NewLevels returns Levels with the given rules; "" is info.
func NewLevels(rules string) (*Levels, error) {
	v := new(Levels)
	if err := v.Set(rules); err != nil {
		return nil, err
	}
	return v, nil
}

// Set replaces all rules. On error it changes nothing; the error names each bad rule.
func (v *Levels) Set(rules string) error {
	parsed, err := parseRules(rules)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.replaceLocked(parsed)
	return nil
}

// SetLevel sets one rule and keeps the others. The pattern is that of a rule: "", a
// name, or a name and ".*".
func (v *Levels) SetLevel(pattern string, level slog.Level) error {
	r, err := parsePattern(pattern)
	if err != nil {
		return err
	}
	r.level = level
	v.mu.Lock()
	defer v.mu.Unlock()
	v.replaceLocked(append(slices.Clone(v.rules), r))
	return nil
}

// String returns the rules in the form that Set takes.
func (v *Levels) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b []byte
	for _, r := range slices.Backward(v.rules) {
		if len(b) > 0 {
			b = append(b, ',')
		}
		if r.name != "" {
			b = append(append(b, r.pattern()...), '=')
		}
		if r.level == LevelOff {
			b = append(b, "off"...)
		} else {
			b = append(b, strings.ToLower(string(levels.Append(nil, r.level)))...)
		}
	}
	return string(b)
}

// Level returns the lowest level that a logger of that name logs.
func (v *Levels) Level(name string) slog.Level {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.levelLocked(name)
}

func (v *Levels) levelLocked(name string) slog.Level {
	for _, r := range v.rules {
		if r.name == "" || r.name == name || r.below && strings.HasPrefix(name, r.name) && name[len(r.name)] == '.' {
			return r.level
		}
	}
	return slog.LevelInfo
}

// replaceLocked sorts rules, drops those that a later one replaces, and moves every
// gate.
func (v *Levels) replaceLocked(rules []levelRule) {
	slices.Reverse(rules) // so that the last of equal rules is kept
	seen := make(map[levelRule]bool)
	rules = slices.DeleteFunc(rules, func(r levelRule) bool {
		r.level = 0
		known := seen[r]
		seen[r] = true
		return known
	})
	slices.SortStableFunc(rules, func(a, b levelRule) int {
		return cmp.Or(cmp.Compare(len(b.name), len(a.name)), cmp.Compare(a.pattern(), b.pattern())) // the exact one before that for all below
	})
	v.rules = rules
	for key, p := range v.gates {
		if g := p.Value(); g != nil {
			g.Set(v.gateLevelLocked(key))
		}
	}
}

// gateLevelLocked returns the level of a gate.
func (v *Levels) gateLevelLocked(key gateKey) slog.Level {
	lowest := v.levelLocked(key.name)
	if key.below {
		prefix := key.name + "."
		lowest = min(lowest, v.levelLocked(prefix)) // of a name without a rule of its own
		for _, r := range v.rules {
			if r.name != "" && (key.name == "" || strings.HasPrefix(r.name, prefix)) {
				lowest = min(lowest, r.level)
			}
		}
	}
	return max(lowest, key.floor)
}

// gate returns the gate of that key. It follows the rules while it is in use.
func (v *Levels) gate(key gateKey) *slog.LevelVar {
	v.mu.Lock()
	defer v.mu.Unlock()
	if g := v.gates[key].Value(); g != nil {
		return &g.LevelVar
	}
	g := &nameGate{key: key}
	g.Set(v.gateLevelLocked(key))
	if v.gates == nil {
		v.gates = make(map[gateKey]weak.Pointer[nameGate])
	}
	v.gates[key] = weak.Make(g)
	runtime.AddCleanup(g, v.forget, key)
	return &g.LevelVar
}

// forget drops a gate that is no longer in use, unless it has been recreated.
func (v *Levels) forget(key gateKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p, ok := v.gates[key]; ok && p.Value() == nil {
		delete(v.gates, key)
	}
}

func parseRules(text string) ([]levelRule, error) {
	var rules []levelRule
	var errs []error
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		pattern, level, named := strings.Cut(part, "=")
		if !named {
			pattern, level = "", part
		}
		r, err := parsePattern(strings.TrimSpace(pattern))
		if err == nil && named && pattern == "" {
			err = errors.New("there is no name before the =")
		}
		var ok bool
		if r.level, ok = parseLevel(strings.TrimSpace(level)); !ok && err == nil {
			err = fmt.Errorf("%q is no level: take one of trace, debug, info, warn, error, panic, fatal, off", level)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("level rule %q: %w", part, err))
		}
		rules = append(rules, r)
	}
	return rules, errors.Join(errs...)
}

func parsePattern(pattern string) (levelRule, error) {
	if pattern == "" || pattern == "*" {
		return levelRule{}, nil
	}
	name, below := strings.CutSuffix(pattern, ".*")
	if strings.ContainsAny(name, ",=") || strings.TrimSpace(name) != name {
		return levelRule{}, fmt.Errorf("a name in a rule has no comma, equals sign or space around it, as %q has", name)
	}
	if strings.Contains(name, "*") || name == "" {
		return levelRule{}, errors.New("a * can only stand alone or at the end, as in db.*")
	}
	return levelRule{name: name, below: below}, nil
}

func parseLevel(s string) (slog.Level, bool) {
	if strings.EqualFold(s, "off") {
		return LevelOff, true
	}
	return levels.Parse([]byte(s))
}

// LevelRange is a Leveler for [Output.Level] that admits the levels from Min to Max.
type LevelRange struct{ Min, Max slog.Level }

// Level returns Min.
func (r LevelRange) Level() slog.Level { return r.Min }

// Admits reports whether l is in the range.
func (r LevelRange) Admits(l slog.Level) bool { return r.Min <= l && l <= r.Max }

// LevelFunc is a Leveler for [Output.Level] that admits the levels for which it
// returns true. It must be safe for concurrent use.
type LevelFunc func(slog.Level) bool

// Level returns a level below all others: only Admits decides.
func (LevelFunc) Level() slog.Level { return lowestLevel }

// Admits calls f.
func (f LevelFunc) Admits(l slog.Level) bool { return f(l) }
