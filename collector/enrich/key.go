package enrich

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollway/rollway/collector/normalize"
)

// A key is what a rule selects by: the path of a value, in small letters, its
// parts joined by dots. * matches any text without a dot, ** any text.
type key struct {
	text  string
	glob  bool
	attrs bool // of an attribute only
}

// merged are the objects whose members become attributes.
var merged = []string{"metadata", "attributes", "fields", "context"}

// newKeys returns the keys that select what text names. A value may have come
// under another name than it has in the line, so that is one of them too; under a
// name that is rarely read so, only if the value is secret.
func newKeys(names *normalize.Keys, text string, secret bool) ([]key, error) {
	if text == "" || strings.HasPrefix(text, ".") || strings.HasSuffix(text, ".") || strings.Contains(text, "***") {
		return nil, fmt.Errorf("%q is no key: write names joined by dots, as in user.email, with * for any name and **. for any above", text)
	}
	low := lower(text)
	if low == "time" || low == "level" {
		return nil, errors.New(low + " is in every line and cannot be selected")
	}
	first, rest, dotted := strings.Cut(low, ".")
	if first == "attrs" {
		if !dotted {
			rest = "**"
		}
		return expand(nil, rest, true), nil
	}
	keys := expand(nil, low, false)
	for _, name := range merged {
		if first != name || !dotted {
			continue
		}
		keys = expand(keys, rest, true)
		// An error there, and what has one name among attributes, moves.
		inner := text[len(first)+1:]
		outer, _, _ := strings.Cut(inner, ".")
		if slot, _ := names.ReadAs(outer); slot != "" && (names.SlotOf(slot) == "" || slot == "error") {
			if more, err := newKeys(names, inner, secret); err == nil {
				keys = append(keys, more...)
			}
		}
	}
	// service.name is one name, message.text is text below message.
	if slot, rarely := names.ReadAs(text); slot != "" && slot != low && slot != "time" && slot != "level" && (secret || !rarely) {
		keys = expand(keys, slot, false)
		if slot == "error.stack" && secret { // type and message are told by it
			keys = expand(expand(keys, "error.type", false), "error.message", false)
		}
	} else if slot, _ := names.ReadAs(text[:len(first)]); dotted && slot != "" {
		if slot != first {
			keys = expand(keys, slot+"."+rest, false)
		}
		if member := normalize.ErrorMember(rest); slot == "error" && member != "" && member != rest {
			keys = expand(keys, slot+"."+member, false)
		}
	}
	return keys, nil
}

// expand adds the key, and what it means where ** is nothing.
func expand(keys []key, text string, attrs bool) []key {
	keys = append(keys, key{text, strings.Contains(text, "*"), attrs})
	if rest, found := strings.CutPrefix(text, "**."); found {
		return expand(keys, rest, attrs)
	}
	if before, after, found := strings.Cut(text, ".**."); found {
		keys = expand(keys, before+"."+after, attrs)
	}
	return keys
}

// lower is s with small letters for the capital ones of ASCII.
func lower(s string) string { return string(appendLower(nil, []byte(s))) }

func appendLower(dst, s []byte) []byte {
	for _, c := range s {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// is reports whether k is for path.
func (k *key) is(path []byte) bool {
	if !k.glob {
		return string(path) == k.text
	}
	return glob(k.text, path, false)
}

// leads reports whether k may be for something below path, which ends in a dot.
func (k *key) leads(path []byte) bool {
	if !k.glob {
		return len(path) < len(k.text) && k.text[:len(path)] == string(path)
	}
	return glob(k.text, path, true)
}

// glob matches s, or with part true some text that begins with s. It goes back
// to the last * and the last ** only, as no earlier one can do better.
func glob(pattern string, s []byte, part bool) bool {
	p, i := 0, 0
	star, starAt, stars, starsAt := -1, 0, -1, 0
	for {
		switch {
		case i == len(s) && (part || p == len(pattern)):
			return true
		case strings.HasPrefix(pattern[p:], "**"):
			p += 2
			stars, starsAt, star = p, i, -1
			continue
		case p < len(pattern) && pattern[p] == '*':
			p++
			star, starAt = p, i
			continue
		case p < len(pattern) && i < len(s) && pattern[p] == s[i]:
			p, i = p+1, i+1
			continue
		}
		switch {
		case star >= 0 && starAt < len(s) && s[starAt] != '.':
			starAt++
			p, i = star, starAt
		case stars >= 0 && starsAt < len(s):
			starsAt++
			p, i, star = stars, starsAt, -1
		default:
			return false
		}
	}
}
