package promtext

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Write writes the tables of a package to w. Each name begins with rollway_ and the
// package's name, and each sample gets the labels, names and values alternating. The error
// names a label that is malformed or that a metric already uses, or is w's.
func Write(w io.Writer, of string, labels []string, tables ...Table) error {
	t := slices.Concat(tables...)
	if err := checkLabels(labels, t); err != nil {
		return fmt.Errorf("%s: write metrics: %w", of, err)
	}
	names, values := everySecond(labels, 0), everySecond(labels, 1)
	common := labelText(names, values)
	var b bytes.Buffer
	for _, m := range t {
		name := "rollway_" + of + "_" + m.name
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, m.help, name, m.kind)
		for _, s := range m.samples {
			b.WriteString(name + s.suffix)
			if text := common + labelText(m.labels, s.labels); text != "" {
				b.WriteString("{" + strings.TrimSuffix(text, ",") + "}")
			}
			b.WriteString(" " + number(s.value) + "\n")
		}
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("%s: write metrics: %w", of, err)
	}
	return nil
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func checkLabels(labels []string, t Table) error {
	if len(labels)%2 != 0 {
		return fmt.Errorf("label %q has no value", labels[len(labels)-1])
	}
	names := everySecond(labels, 0)
	for i, name := range names {
		switch {
		case !labelName.MatchString(name), strings.HasPrefix(name, "__"):
			return fmt.Errorf("%q is not a valid label name", name)
		case slices.ContainsFunc(t, func(m Metric) bool { return slices.Contains(m.labels, name) }):
			return fmt.Errorf("label %q is reserved", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("label %q is given twice", name)
		}
	}
	return nil
}

// everySecond returns the elements first, first+2 and so on.
func everySecond(list []string, first int) (out []string) {
	for i := first; i < len(list); i += 2 {
		out = append(out, list[i])
	}
	return out
}

// labelText writes labels with a comma after each. Names without a value are left out.
func labelText(names, values []string) string {
	var b strings.Builder
	for i, v := range values {
		b.WriteString(names[i] + `="` + escapes.Replace(strings.ToValidUTF8(v, "\uFFFD")) + `",`)
	}
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// number writes a million as 1000000: 1e+06 is allowed, and hard to read.
func number(value float64) string {
	format := byte('f')
	if size := math.Abs(value); size >= 1<<53 || size > 0 && size < 1e-9 {
		format = 'g'
	}
	return strconv.FormatFloat(value, format, -1, 64)
}
