package normalize

import "github.com/rollway/rollway/internal/jsonwalk"

// maxNested is how many objects and arrays in one another quickValues follows.
const maxNested = 100

// quickValues is what readValues does, for text that is valid JSON and UTF-8 and
// holds nothing but events. It returns false at anything else, of which the
// decoder then tells what is wrong; the batch is to be taken back.
func (n *Normalizer) quickValues(dst *Batch) bool {
	text := n.body.text
	for i := jsonwalk.SkipSpace(text, 0); i < len(text); i = jsonwalk.SkipSpace(text, i) {
		switch text[i] {
		case '{':
			i = n.quickEvent(dst, i)
		case '[':
			i = n.quickArray(dst, i)
		default:
			return false
		}
		if i < 0 {
			return false
		}
	}
	return true
}

// quickArray reads the array that begins at body.text[i] and returns the index
// behind it, or -1.
func (n *Normalizer) quickArray(dst *Batch, i int) int {
	text := n.body.text
	i = jsonwalk.SkipSpace(text, i+1)
	if i < len(text) && text[i] == ']' {
		return i + 1
	}
	for i < len(text) && text[i] == '{' {
		if i = n.quickEvent(dst, i); i < 0 {
			return -1
		}
		i = jsonwalk.SkipSpace(text, i)
		if i >= len(text) {
			return -1
		}
		switch text[i] {
		case ']':
			return i + 1
		case ',':
			i = jsonwalk.SkipSpace(text, i+1)
		default:
			return -1
		}
	}
	return -1
}

// quickEvent reads the event that begins at body.text[i] and returns the index
// behind it, or -1.
func (n *Normalizer) quickEvent(dst *Batch, i int) int {
	n.beginEvent(dst, i)
	if i = n.quickMembers(i+1, topLevel); i >= 0 {
		n.endEvent(dst, i)
	}
	return i
}

// quickMembers reads the members of the object behind whose '{' body.text[i] is,
// and its '}', and returns the index behind that, or -1. What readMembers says
// of scopes and of faults holds here.
func (n *Normalizer) quickMembers(i int, in scope) int {
	text := n.body.text
	i = jsonwalk.SkipSpace(text, i)
	if i < len(text) && text[i] == '}' {
		return i + 1
	}
	for {
		c := jsonwalk.Checker{MaxDepth: maxNested}
		end, at := c.Name(text, i)
		if at < 0 || at == len(text) {
			return -1
		}
		name := jsonwalk.Span{Start: i, End: end}
		key := keyOther
		if in != belowAttrs {
			key = n.lookupIn(in, name.Of(text))
		}
		if merges(key) && text[at] == '{' {
			i = n.quickMembers(at+1, below(key))
		} else if i = c.Value(text, at); i >= 0 && n.ev.fault == ok {
			n.takeMember(key, name, jsonwalk.Span{Start: at, End: i}, kindOf(text[at]), !c.Spaced && c.Depth <= n.limits.MaxDepth-2)
		}
		if i < 0 {
			return -1
		}
		if i = jsonwalk.SkipSpace(text, i); i >= len(text) {
			return -1
		}
		switch text[i] {
		case '}':
			return i + 1
		case ',':
			i = jsonwalk.SkipSpace(text, i+1)
		default:
			return -1
		}
	}
}
