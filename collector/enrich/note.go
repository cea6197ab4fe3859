package enrich

import (
	"bytes"
	"slices"
)

// A Note tells what one step of a Program has done to an event.
type Note struct {
	Step   string // one of the constants; "" for a rule
	Rule   string // its name
	Action string // of a rule, such as drop
	Did    string // one of the constants
	Line   []byte // the event after it, valid during the call; nil: as before, or dropped
}

// Steps that are no rules. The first of each event is StepRead.
const (
	StepRead        = "read"        // what the receiver has made of the event
	StepNetworks    = "networks"    // enrich.networks, by addresses in events
	StepDefaults    = "defaults"    // that a rule might have provided
	StepFingerprint = "fingerprint" // enrich.fingerprint
)

// What steps do.
const (
	Changed = "changed" // also of StepRead
	Dropped = "dropped"
	Kept    = "kept"    // by a rule that drops other events
	NotFor  = "not for" // the event: the rule's where does not match
	Nothing = "nothing" // is found that the rule is for
)

// Noting returns a Program that does what p does, which may be nil, and tells note of it.
func (p *Program) Noting(note func(Note)) *Program {
	q := new(Program)
	if p != nil {
		*q = *p
	}
	q.note = note
	return q
}

// RuleInfo names a rule.
type RuleInfo struct {
	Name   string `json:"name"`
	Action string `json:"action"` // such as drop
}

// Rules returns the rules in their order. A nil Program has none.
func (p *Program) Rules() (list []RuleInfo) {
	if p == nil {
		return nil
	}
	for i := range p.rules {
		list = append(list, RuleInfo{p.rules[i].name, p.rules[i].verb()})
	}
	return list
}

// verb is the name of what the rule does.
func (r *rule) verb() string {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.action == r.action })
	return verbs[i].name
}

// notes follows one event through a Program.
type notes struct {
	note    func(Note)
	before  []byte // the line
	applies bool   // the rule that comes is for it
}

// noting returns what follows an event; nil: nobody wants to know.
func (p *Program) noting(line []byte) *notes {
	if p.note == nil {
		return nil
	}
	n := &notes{note: p.note, before: bytes.Clone(line)}
	n.note(Note{Step: StepRead, Did: Changed, Line: line})
	return n
}

// step tells of a step that may have changed the line.
func (n *notes) step(name string, line []byte) {
	if n.changes(line) {
		n.note(Note{Step: name, Did: Changed, Line: line})
	}
}

func (n *notes) changes(line []byte) bool {
	if bytes.Equal(n.before, line) {
		return false
	}
	n.before = bytes.Clone(line)
	return true
}

// begins is called before a rule is applied.
func (n *notes) begins(r *rule, line []byte) { n.applies = r.where == nil || r.where.Match(line) }

// ends is called after a rule was applied; line is nil if it has dropped the event.
func (n *notes) ends(r *rule, line []byte) {
	did := Note{Rule: r.name, Action: r.verb(), Did: Nothing}
	switch {
	case line == nil:
		did.Did = Dropped
	case r.action == drop, r.action == keep:
		did.Did = Kept
	case !n.applies:
		did.Did = NotFor
	case n.changes(line):
		did.Did, did.Line = Changed, line
	}
	n.note(did)
}
