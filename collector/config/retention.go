package config

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// TenantLimit is what one tenant keeps in the journal; 0: as the journal does.
type TenantLimit struct {
	RetainSize Size
	RetainAge  time.Duration
}

// TenantLimits returns the limits in Tenants, by name. The error is Errors.
func (j *Journal) TenantLimits() (map[string]TenantLimit, error) {
	if j.Tenants == nil {
		return nil, nil
	}
	const section = "journal.tenants"
	l := loader{name: j.Tenants.File}
	limits := make(map[string]TenantLimit)
	if j.Tenants.Node.Kind != yaml.MappingNode {
		l.fail(j.Tenants.Node, section, "names of tenants are wanted, each with retain_size or retain_age; this is %s", describe(j.Tenants.Node))
		return nil, l.errors
	}
	for k, v := range pairs(j.Tenants.Node) {
		key := join(section, k.Value)
		if _, twice := limits[k.Value]; twice || v.Kind != yaml.MappingNode {
			l.fail(k, key, "wanted once, with retain_size or retain_age below it")
			continue
		}
		var c Config // has the two settings of the whole journal
		for k, v := range pairs(v) {
			err := fmt.Errorf("unknown key; known are retain_size and retain_age")
			if k.Value == "retain_size" || k.Value == "retain_age" {
				err = c.Set(join("journal", k.Value), v.Value)
			}
			if err != nil {
				l.fail(k, join(key, k.Value), "%v", err)
			}
		}
		limits[k.Value] = TenantLimit{c.Journal.RetainSize, c.Journal.RetainAge}
	}
	if len(l.errors) > 0 {
		return nil, l.errors
	}
	return limits, nil
}

// pairs yields the keys and values of a mapping.
func pairs(m *yaml.Node) func(yield func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if !yield(m.Content[i], m.Content[i+1]) {
				return
			}
		}
	}
}

// Block is a part of a file that another package parses. It is immutable.
type Block struct {
	File string     // for errors; "": not from a file
	Node *yaml.Node // with the lines and columns of the file
}

// newBlock returns nil for a block with nothing in it.
func newBlock(file string, n *yaml.Node) *Block {
	empty := n.Kind == yaml.ScalarNode && n.Tag == "!!null"
	if empty || n.Kind != yaml.ScalarNode && len(n.Content) == 0 {
		return nil
	}
	return &Block{File: file, Node: n}
}

func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n
	}
	for _, kid := range n.Content {
		if alias := findAlias(kid); alias != nil {
			return alias
		}
	}
	return nil
}

func uncommented(n *yaml.Node) *yaml.Node {
	c := *n
	c.HeadComment, c.LineComment, c.FootComment = "", "", ""
	c.Content = nil
	for _, kid := range n.Content {
		c.Content = append(c.Content, uncommented(kid))
	}
	return &c
}
