package tables

import (
	_ "embed" // of the claims
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A claim is something that a publication says, beside what the results say.
type claim struct {
	publication, says, published, here string
	verdict                            string
	why                                string
}

// unexplained replaces a reason that was given for the opposite outcome.
const unexplained = "not explained: it was otherwise when the reason was written"

// claim adds a claim. same reports whether the results point where the publication
// does: a bool, or the text "open" where they say neither. why gives the reason for
// the direction that expect names: "holds", "fails", or "either".
func (e *env) claim(publication, says, published, here string, same any, expect, why string) (string, error) {
	c := claim{publication, says, published, here, "", why}
	switch same {
	case true, false:
		c.verdict = verdict(same.(bool))
		if expect == "holds" && same == false || expect == "fails" && same == true {
			c.why = unexplained
		}
	case "open":
		c.verdict = "not shown"
	default:
		return "", fmt.Errorf("%s: the direction is %v", says, same)
	}
	e.claims = append(e.claims, c)
	return "", nil
}

// claimed is the table of all claims.
func (e *env) claimed() string {
	counts := map[string]int{}
	var table strings.Builder
	table.WriteString("| publication | claim | published | here | same direction | why |\n|---\n")
	for _, c := range e.claims {
		counts[c.verdict]++
		fmt.Fprintf(&table, "| %s |\n", strings.Join([]string{c.publication, c.says, c.published, c.here, c.verdict, c.why}, " | "))
	}
	return fmt.Sprintf("%d of %d claims hold here; %d could not be shown, one way or the other.\n\n%s", counts["yes"], len(e.claims), counts["not shown"], table.String())
}

// allocationClaims are the claims of "How to write a Golang Zero Allocation Logging
// Library": what it says, the condition of holds, and the reason.
//
//go:embed allocation-claims.txt
var allocationClaims string

// holds evaluates a condition such as "plain/const bytes >= 40 & pooled/const = 0":
// comparisons, joined by &, of what a case allocates with a toolchain, its allocations
// unless it says bytes, with a number or another case.
func holds(condition string, counts []any, toolchain string) (bool, error) {
	value := func(words []string) (float64, error) {
		if v, err := strconv.ParseFloat(words[0], 64); err == nil {
			return v, nil
		}
		c, err := find(counts, "case", words[0], "go", toolchain)
		if err != nil {
			return 0, err
		}
		n := c.(map[string]any)
		if len(words) > 1 {
			return math.Round(n[words[1]].(float64)), nil
		}
		allocs := n["allocs"].(float64)
		if whole := math.Round(allocs); math.Abs(allocs-whole) <= 0.02 { // the runtime's own
			return whole, nil
		}
		return allocs, nil
	}
	for comparison := range strings.SplitSeq(condition, "&") {
		words := strings.Fields(comparison)
		i := slices.IndexFunc(words, func(w string) bool { return strings.Trim(w, "<>=") == "" })
		if i < 1 || i+1 >= len(words) {
			return false, fmt.Errorf("%q is no comparison", comparison)
		}
		left, err := value(words[:i])
		right, err2 := value(words[i+1:])
		if err := errors.Join(err, err2); err != nil {
			return false, err
		}
		if !map[string]bool{"=": left == right, ">": left > right, ">=": left >= right, "<": left < right}[words[i]] {
			return false, nil
		}
	}
	return true, nil
}
