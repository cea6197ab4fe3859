package enrich

import (
	"slices"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/query"
)

// action is what a rule does.
type action uint8

const (
	drop   action = iota // events that the rule is for are left out
	keep                 // and all others
	remove               // what the keys select is left out
	only                 // and all other attributes
	rename
	redact // what the keys select, or what matches in it, is replaced
)

// A rule is one step of what is done to an event. It is immutable.
type rule struct {
	name   string
	action action
	where  *query.Query // which events it is for; nil: all
	keys   []key        // which values, the first of them for rename; none: all
	match  *matcher     // what in them; nil: all of it
	needs  needs        // of keys
	asks   needs        // of where

	with     []byte // what replaces a value, as JSON
	withText []byte // what replaces a match

	to   []byte // of rename: its new name as JSON
	slot string // of rename: the key of the line that to is; "": it is an attribute

	toName string // to as text

	tenants  bool // it leaves the attribute normalize.Tenant alone
	thorough bool // it is never idle: for tests
}

// decides reports whether the rule is one that drops events, and if so whether
// it drops the event of the line.
func (r *rule) decides(line []byte, seen *seen, s *normalize.Scratch) (dropped bool) {
	switch r.action {
	case drop:
		return r.applies(line, seen, &s.Text) && (r.match == nil || !r.idle(line, seen, &s.Text) && r.finds(line, s))
	case keep:
		return !r.applies(line, seen, &s.Text) || r.match != nil && (r.idle(line, seen, &s.Text) || !r.finds(line, s))
	}
	return false
}

// applies reports whether the rule is for the event of the line.
func (r *rule) applies(line []byte, seen *seen, buf *[]byte) bool {
	if r.where == nil {
		return true
	}
	if !r.thorough {
		if holds, told := r.where.MatchLevel(seen.level); told {
			return holds
		}
		if len(r.asks.bits) > 0 && !seen.has(&r.asks, line, buf) {
			return false
		}
	}
	return r.where.Match(line)
}

// selects reports whether a key of the rule is for path. inAttrs tells that it
// is below attrs.
func (r *rule) selects(path []byte, inAttrs bool) bool {
	return slices.ContainsFunc(r.keys, func(k key) bool { return (inAttrs || !k.attrs) && k.is(path) })
}

// leads reports whether a key of the rule may be for something below path.
func (r *rule) leads(path []byte) bool {
	return slices.ContainsFunc(r.keys, func(k key) bool { return k.leads(path) })
}
