package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

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

func parseBlock(text string) (*Block, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	if doc.Kind == 0 {
		return nil, nil
	}
	if alias := findAlias(doc.Content[0]); alias != nil {
		return nil, fmt.Errorf("aliases are not allowed: write out the value")
	}
	return newBlock("", doc.Content[0]), nil
}

// findAlias returns an alias in n, or nil.
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

// yaml writes the block as the value of a key.
func (b *Block) yaml(key string) string {
	if b == nil {
		if key == "rules" {
			return "[]"
		}
		return "{}"
	}
	node := b.Node
	inLine := node.Kind == yaml.ScalarNode || node.Style&yaml.FlowStyle != 0
	if inLine { // a comment would separate key and value
		node = uncommented(node)
	}
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return "{} # " + err.Error()
	}
	text := strings.TrimRight(out.String(), "\n")
	if inLine {
		return text
	}
	return "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// uncommented returns a copy of n without comments.
func uncommented(n *yaml.Node) *yaml.Node {
	c := *n
	c.HeadComment, c.LineComment, c.FootComment = "", "", ""
	c.Content = nil
	for _, kid := range n.Content {
		c.Content = append(c.Content, uncommented(kid))
	}
	return &c
}
