// Package vectors holds texts that a reader of JSON must accept, must reject, or
// may treat as it likes, for the tests of all that reads JSON here. What must be
// is by RFC 8259; what may be is decided once, in this table, with the reason.
package vectors

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// A Vector is a text in place of one JSON value.
type Vector struct {
	Group  string
	Text   string
	Accept bool
	Choice string // why, where RFC 8259 leaves it to the implementation; else ""
	// UTF8 is false for a text that is not valid UTF-8 and otherwise right: see Mended.
	UTF8 bool
}

// Name tells vectors apart, for t.Run and messages.
func (v *Vector) Name() string {
	if len(v.Text) > 40 {
		return fmt.Sprintf("%s %.40q… of %d bytes", v.Group, v.Text, len(v.Text))
	}
	return fmt.Sprintf("%s %q", v.Group, v.Text)
}

// Mended is the text with U+FFFD for each byte that is not UTF-8.
func (v *Vector) Mended() string { return string([]rune(v.Text)) }

// OneLine reports whether the text may be in a line.
func (v *Vector) OneLine() bool { return !strings.Contains(v.Text, "\n") }

// Reasons for choices.
const (
	byDigits     = "numbers keep their digits and become no float, so none is too large, too small or too fine"
	bySurrogate  = "escapes stay as they were sent, so half of a surrogate pair is neither changed nor lost"
	byUTF8       = "RFC 8259 section 8.1 wants UTF-8, and a line must be UTF-8 to be searched; a byte of another encoding costs a character and no event"
	byDuplicates = "names should be unique but need not be; members of objects within events are kept as they were sent"
	byDepth      = "an event nests 64 levels at most unless set otherwise, so that readers of lines need no more stack"
	byReading    = "nobody reads more than 10,000 levels, so what follows them in a body is not found either"
	bySize       = "an event has 1 MiB at most unless set otherwise"
)

// TooDeepToRead is the group of what is rejected with the whole text around it.
const TooDeepToRead = "depth, beyond 10,000"

// Depth and size that are far within the usual limits, and far beyond.
const (
	shallow = 50
	deep    = 500
	large   = 100_000
	huge    = 2 << 20
)

// text has the texts of a group after each # line, each quoted as in Go.
//
//go:embed table.txt
var text string

// readTable returns the texts by group.
func readTable() map[string][]string {
	table, group := make(map[string][]string), ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, is := strings.CutPrefix(line, "# "); is {
			group = name
			continue
		}
		one, err := strconv.Unquote(line)
		if err != nil {
			panic("table.txt: " + line)
		}
		table[group] = append(table[group], one)
	}
	return table
}

// Values returns all vectors.
func Values() []Vector {
	table := readTable()
	var all []Vector
	add := func(group string, accept bool, choice string, texts ...string) {
		for _, text := range texts {
			all = append(all, Vector{Group: group, Text: text, Accept: accept, Choice: choice, UTF8: choice != byUTF8})
		}
	}
	add("number", true, "", table["numbers"]...)
	add("number, any size", true, byDigits, table["any size"]...)
	add("number", false, "", table["not numbers"]...)
	add("literal", true, "", "true", "false", "null")
	add("literal", false, "", table["not literals"]...)
	add("string", true, "", table["strings"]...)
	add("string, lone surrogate", true, bySurrogate, table["lone surrogates"]...)
	add("string, not UTF-8", true, byUTF8, table["not UTF-8"]...)
	add("string", false, "", table["not strings"]...)
	for c := range byte(' ') { // control characters must be escaped
		add("string, control character", false, "", "\"a"+string(rune(c))+"b\"", "\"\\"+string(rune(c))+"\"")
	}
	add("array", true, "", table["arrays"]...)
	add("array", false, "", table["not arrays"]...)
	add("object", true, "", table["objects"]...)
	add("object, equal names", true, byDuplicates, table["equal names"]...)
	add("object, lone surrogate in a name", true, bySurrogate, `{"\ud800":1}`, `{"\udc00\ud800":[]}`)
	add("object, name not UTF-8", true, byUTF8, "{\"\xff\":1}", "{\"a\xb9\":\"b\"}", "{\"\xed\xa0\x80\":0}")
	add("object", false, "", table["not objects"]...)
	add("white space", true, "", table["spaced"]...)
	add("white space", false, "", table["not spaced"]...)
	add("comment", false, "", table["comments"]...)
	add("after the value", false, "", table["after the value"]...)

	add("depth", true, "", strings.Repeat("[", shallow)+strings.Repeat("]", shallow), strings.Repeat(`{"a":`, shallow)+"1"+strings.Repeat("}", shallow),
		strings.Repeat(`[{"":`, shallow/2)+"null"+strings.Repeat("}]", shallow/2))
	add("depth", false, byDepth, strings.Repeat("[", deep)+strings.Repeat("]", deep), strings.Repeat(`{"a":`, deep)+"1"+strings.Repeat("}", deep))
	add(TooDeepToRead, false, byReading, strings.Repeat("[", large)+strings.Repeat("]", large))
	add("depth, not closed", false, "", strings.Repeat("[", deep), strings.Repeat("[", large), strings.Repeat(`{"":`, deep), strings.Repeat(`[{"":`, large/2), strings.Repeat("[", 10_001))
	add("size", true, "", `"`+strings.Repeat("x", large)+`"`, `"`+strings.Repeat(`\u00e9`, 10_000)+`"`, `"`+strings.Repeat("日", 10_000)+`"`,
		"["+strings.Repeat("1,", 10_000)+"1]", `{"`+strings.Repeat("k", 900)+`":1}`, "["+strings.Repeat(" ", large)+"]")
	add("size", true, byDigits, strings.Repeat("7", 10_000), "0."+strings.Repeat("0", 10_000)+"1", "1e"+strings.Repeat("9", 1_000))
	add("size", false, bySize, `"`+strings.Repeat("x", huge)+`"`)
	add("size, not closed", false, "", `"`+strings.Repeat("x", large), "["+strings.Repeat("1,", 10_000), "["+strings.Repeat("1,", 10_000)+"]")
	return all
}
