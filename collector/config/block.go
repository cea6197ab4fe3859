package config

import "go.yaml.in/yaml/v3"

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
