// Package enrich adds to events what a collector's configuration says, and
// does to them what its rules say, before they are stored. docs/ENRICH.md is
// its manual.
//
// A Program is what a configuration means. It works on canonical lines, as
// package normalize has just made them: what it adds to all events of a request
// is made once for the request, and a rule that has nothing to do in a line
// costs a walk through it. Nothing is decoded but strings that have escapes,
// and nothing is allocated.
package enrich

import (
	"net/netip"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
)

// Names of attributes that a Program adds.
const (
	Host        = "received_by" // the machine that took the event in
	Client      = "client_ip"   // where the event came from
	ID          = "ulid"        // an identifier, see package ulid
	Fingerprint = "fingerprint" // a hash that events of one kind have in common
)

// A Program is what events get and what is done to them. It is immutable and
// safe for concurrent use: a normalize.Enricher.
type Program struct {
	fixed    normalize.Extras
	defaults *normalize.Defaults // nil: none
	client   bool
	ids      *ulid.Source // nil: none
	hashed   bool         // events get a fingerprint,
	hashAt   int          // before the rule of this index is applied
	networks *networks    // by the client's address; nil: none
	byField  []*networks  // by addresses in events
	parsers  []parser
	rules    []rule
	redacts  bool       // one of them does
	late     []rule     // defaults that a rename may provide: added after the rules
	note     func(Note) // see Noting; nil: nobody wants to know
}

var _ normalize.Enricher = (*Program)(nil)

var idName = []byte(ID)

// Begin implements normalize.Enricher.
func (p *Program) Begin(x *normalize.Extras, peer netip.Addr) {
	x.Join(&p.fixed)
	if p.client && peer.IsValid() {
		x.AddAddr(clientName, peer.Unmap().WithZone(""))
	}
	if p.networks != nil && peer.IsValid() {
		if found := p.networks.find(peer.Unmap().WithZone("")); found != nil {
			x.Join(found)
		}
	}
	if p.ids != nil {
		x.Reserve(idName)
	}
	for _, table := range p.byField {
		for _, name := range table.names {
			x.Reserve(name)
		}
	}
}

var clientName = []byte(Client)

// Own implements normalize.Enricher.
func (p *Program) Own(attrs []byte, received time.Time, s *normalize.Scratch) []byte {
	if p.ids == nil {
		return attrs
	}
	attrs = append(attrs, `"ulid":"`...)
	attrs = p.ids.Append(attrs, received)
	return append(attrs, `",`...)
}

// Defaults implements normalize.Enricher.
func (p *Program) Defaults() *normalize.Defaults { return p.defaults }

// Finish implements normalize.Enricher.
func (p *Program) Finish(line []byte, known *normalize.Known, s *normalize.Scratch) (out []byte, dropped string) {
	notes := p.noting(line)
	if line = p.addByField(line, s); notes != nil {
		notes.step(StepNetworks, line)
	}
	var own *[]byte // the part of s that line is in; nil: it is in neither
	seen := seen{event: known, level: known.Level, filled: known.Filled()}
	for i := range p.rules {
		if p.hashed && i == p.hashAt {
			line = p.hash(line, own, s)
			seen.forget(true)
		}
		r := &p.rules[i]
		if notes != nil {
			notes.step(StepFingerprint, line)
			notes.begins(r, line)
		}
		switch {
		case r.action == drop || r.action == keep:
			if r.decides(line, &seen, s) {
				if notes != nil {
					notes.ends(r, nil)
				}
				return nil, r.name
			}
		case !r.idle(line, &seen, &s.Text) && r.applies(line, &seen, &s.Text):
			before := &line[0]
			line, own = r.rewrite(line, own, s)
			if &line[0] != before {
				seen.forget(r.action == rename || len(r.keys) == 0)
			}
		}
		if notes != nil {
			notes.ends(r, line)
		}
	}
	for i := range p.late {
		line, own = p.late[i].provide(line, own, s)
	}
	if notes != nil {
		notes.step(StepDefaults, line)
	}
	if p.hashed && p.hashAt == len(p.rules) {
		line = p.hash(line, own, s)
	}
	if notes != nil {
		notes.step(StepFingerprint, line)
	}
	return line, ""
}

// hash adds the fingerprint; own is what of s line is in, so that the room it
// takes is kept.
func (p *Program) hash(line []byte, own *[]byte, s *normalize.Scratch) []byte {
	line = appendFingerprint(line, s)
	if own != nil {
		*own = line
	}
	return line
}

// Withholds implements normalize.Enricher.
func (p *Program) Withholds() bool { return p.redacts }
