package enrich

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"unsafe"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/collector/forwarded"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/disk"
)

// networks tells by an address what the narrowest network that holds it adds.
// It is immutable once it is filled.
type networks struct {
	rows    map[netip.Prefix]*normalize.Extras
	lengths [2][]int // of prefixes of IPv4 and IPv6, the longest first

	field *rule    // finds the address in the event; nil: it is the client's
	names [][]byte // of all attributes that rows have
}

// find returns what the network of addr adds, nil if there is none.
func (n *networks) find(addr netip.Addr) *normalize.Extras {
	family := 0
	if addr.Is6() {
		family = 1
	}
	for _, length := range n.lengths[family] {
		prefix, err := addr.Prefix(length)
		if err != nil {
			continue
		}
		if x := n.rows[prefix]; x != nil {
			return x
		}
	}
	return nil
}

// add adds a network; false if it is there.
func (n *networks) add(p netip.Prefix, x *normalize.Extras) bool {
	if n.rows[p] != nil {
		return false
	}
	n.rows[p] = x
	family := 0
	if p.Addr().Is6() {
		family = 1
	}
	if list := &n.lengths[family]; !slices.Contains(*list, p.Bits()) {
		*list = append(*list, p.Bits())
		slices.SortFunc(*list, func(a, b int) int { return b - a })
	}
	return true
}

// addByField adds to the line what the networks say of the addresses in its fields.
// The names were reserved in Begin.
func (p *Program) addByField(line []byte, s *normalize.Scratch) []byte {
	for _, table := range p.byField {
		addr, has := table.field.address(line, s)
		if !has {
			continue
		}
		if found := table.find(addr); found != nil {
			_, has := attrsOf(line)
			line = found.AppendTo(openAttrs(line, has))
			line = append(line[:len(line)-1], "}}"...)
		}
	}
	return line
}

// address returns the address in the first value that the keys of a rename select, with
// or without a port; false if that is no address.
func (r *rule) address(line []byte, s *normalize.Scratch) (addr netip.Addr, has bool) {
	w := rewriter{rule: r, src: line, path: s.Path[:0], text: &s.Text}
	w.line()
	s.Path = w.path
	if !w.found || line[w.value.Start] != '"' {
		return addr, false
	}
	// Nothing of the text is kept, and a string of its own would be allocated.
	text := plain(w.value.Of(line), &s.Text)
	return forwarded.ParseNode(unsafe.String(unsafe.SliceData(text), len(text)))
}

// maxNetworks is the size of a file of networks in bytes, at most.
const maxNetworks = 64 << 20

// maxTables is how many tables of networks there may be.
const maxTables = 16

// networks reads a table of networks, or a list of them.
func (l *loader) networks(n *yaml.Node) {
	const section = "enrich.networks"
	if n.Kind != yaml.SequenceNode {
		l.networksBy(n, section, section)
		return
	}
	if len(n.Content) > maxTables {
		l.fail(n, section, "%d tables are more than %d", len(n.Content), maxTables)
		return
	}
	clients := 0
	for i, item := range n.Content {
		if table := l.networksBy(item, section, fmt.Sprintf("table %d of %s", i+1, section)); table.field == nil {
			clients++
		}
	}
	if clients > 1 {
		l.fail(n, section, "one table uses the client's address; name the field of the others")
	}
}

// networksBy reads one table; by is what adds its attributes.
func (l *loader) networksBy(n *yaml.Node, section, by string) *networks {
	table := &networks{rows: make(map[netip.Prefix]*normalize.Extras)}
	by = "what " + by + " adds"
	l.mapping(n, section, []string{"file", "table", "field"}, func(name string, k, v *yaml.Node) {
		key := section + "." + name
		switch {
		case name == "table":
			l.networkTable(table, v, key, by)
		case v.Kind != yaml.ScalarNode || v.Value == "":
			wanted := "the path of a CSV file"
			if name == "field" {
				wanted = "the key of a value, as in net.src_ip,"
			}
			l.fail(v, key, "%s is wanted", wanted)
		case name == "field":
			table.field = &rule{action: rename, keys: l.keys(v, key, false)}
		default:
			if err := l.networkFile(table, v, key, by); err != nil {
				l.fail(v, key, "%v", err)
			}
		}
	})
	if table.field == nil {
		l.program.networks = table
	} else {
		l.program.byField = append(l.program.byField, table)
	}
	return table
}

// networkTable reads networks with what each adds.
func (l *loader) networkTable(table *networks, n *yaml.Node, key, by string) {
	l.mapping(n, key, nil, func(name string, k, v *yaml.Node) {
		p, err := forwarded.ParseNetwork(name)
		if err != nil {
			l.fail(k, key, "%v", err)
			return
		}
		x := new(normalize.Extras)
		l.values(v, key+"."+name, func(field *yaml.Node, raw []byte) {
			if l.attribute(field, key+"."+name+"."+field.Value, by) {
				x.AddJSON(field.Value, raw)
				table.name(field.Value)
			}
		})
		if !table.add(p, x) {
			l.fail(k, key, "%s is there already", p)
		}
	})
}

// name notes an attribute.
func (n *networks) name(name string) {
	if !slices.ContainsFunc(n.names, func(b []byte) bool { return string(b) == name }) {
		n.names = append(n.names, []byte(name))
	}
}

// networkFile reads a CSV file: a line of names, the first of them network,
// and a line for each network. An empty field adds nothing.
func (l *loader) networkFile(table *networks, at *yaml.Node, key, by string) error {
	f, err := disk.OpenConfig(at.Value)
	if err != nil {
		return err
	}
	defer f.Close()
	limited := &io.LimitedReader{R: f, N: maxNetworks + 1}
	in := csv.NewReader(limited)
	in.Comment = '#'
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil || strings.TrimPrefix(head[0], "\ufeff") != "network" || len(head) < 2 {
		return fmt.Errorf("%s must begin with a line of names, the first of them network, as in \"network,site\"", at.Value)
	}
	names := slices.Clone(head[1:])
	for i, name := range names {
		switch {
		case name == "" || len(name) > maxName:
			return fmt.Errorf("%s:1: a name has 1 to %d bytes", at.Value, maxName)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("%s:1: %s is there twice", at.Value, name)
		case !l.attribute(at, key+" "+at.Value+":1", by, name):
			return nil // it was told
		}
		table.name(name)
	}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", at.Value, err)
		}
		line, _ := in.FieldPos(0)
		p, err := forwarded.ParseNetwork(strings.TrimSpace(record[0]))
		if err != nil {
			return fmt.Errorf("%s:%d: %w", at.Value, line, err)
		}
		x := new(normalize.Extras)
		for i, name := range names {
			if value := strings.TrimSpace(record[i+1]); value != "" {
				x.Add(name, value)
			}
		}
		if !table.add(p, x) {
			return fmt.Errorf("%s:%d: %s is there already", at.Value, line, p)
		}
	}
	if limited.N == 0 {
		return fmt.Errorf("%s is larger than %d MiB", at.Value, maxNetworks>>20)
	}
	return nil
}
