package config

import (
	"fmt"
	"slices"
	"strings"
)

// suggestion returns a hint at the key that name, found below section, was
// probably meant to be: the nearest spelling, or the same name in another
// place.
func suggestion(section, name string) string {
	plain := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(name))
	known := knownKeys()
	i := slices.IndexFunc(known, func(key string) bool { return key == plain || strings.HasSuffix(key, "."+plain) })
	best := Nearest(join(section, name), known)
	if i >= 0 {
		best = known[i]
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// Nearest returns the word of list that name was probably meant to be, or "".
func Nearest(name string, list []string) (best string) {
	limit := len(name)/3 + 2
	for _, word := range list {
		if d := distance(strings.ToLower(name), word); d < limit {
			best, limit = word, d
		}
	}
	return best
}

// knownKeys lists sections and settings.
func knownKeys() (keys []string) {
	for _, f := range fields {
		if section, _, ok := strings.Cut(f.key, "."); ok && !slices.Contains(keys, section) {
			keys = append(keys, section)
		}
		keys = append(keys, f.key)
	}
	return keys
}

// distance counts the single-byte insertions, deletions, substitutions and
// swaps of neighbours that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
