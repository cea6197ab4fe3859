package enrich

import (
	"net/netip"
	"unsafe"

	"github.com/rollway/rollway/collector/forwarded"
	"github.com/rollway/rollway/collector/normalize"
)

// addByField adds to the line what the networks say of the addresses in its fields.
// The names were reserved in Begin.
func (p *Program) addByField(line []byte, s *normalize.Scratch) []byte {
	for _, table := range p.byField {
		addr, has := table.field.address(line, s)
		if !has {
			continue
		}
		if found := table.find(addr); found != nil {
			line = appendAttrs(line, found)
		}
	}
	return line
}

// address returns the address, with or without a port, that the first value is which
// the keys of a rename select; false if it is none.
func (r *rule) address(line []byte, s *normalize.Scratch) (addr netip.Addr, has bool) {
	w := rewriter{rule: r, src: line, path: s.Path[:0], text: &s.Text, target: -1}
	m, _, found := w.find()
	s.Path = w.path
	if !found || line[m.Value.Start] != '"' {
		return addr, false
	}
	// Nothing of the text is kept, and a string of its own would be allocated.
	text := plain(line[m.Value.Start:m.Value.End], &s.Text)
	return forwarded.ParseNode(unsafe.String(unsafe.SliceData(text), len(text)))
}

// appendAttrs adds attributes at the end of those of a line.
func appendAttrs(line []byte, x *normalize.Extras) []byte {
	if _, has := attrsOf(line); has {
		line = append(line[:len(line)-2], ',')
	} else {
		line = append(line[:len(line)-1], `,"attrs":{`...)
	}
	line = x.AppendTo(line)
	return append(line[:len(line)-1], "}}"...)
}
