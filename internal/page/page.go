// Package page reads documentation that shows commands and what they print, so that tests do what
// it says.
package page

import (
	"fmt"
	"regexp"
	"strings"
)

// Step is one command of a page with the output shown below it.
type Step struct {
	Line       int    // of the command in the page, from 1
	Section    string // the last heading of level 2 before it
	Part       string // the last heading of level 3 in that section
	Command    string
	Output     string // as shown; "" compares nothing
	Background bool   // keeps running until the page ends
	Skip       string // why it is not run
}

// Program is a whole Go program that a page shows.
type Program struct {
	Line   int
	Source string
}

// Parse reads the page in the file of that name by this convention:
//
//   - In a block fenced as sh, a line that begins with "$ " is a command (with
//     the lines after it while they end in a backslash), and the lines up to
//     the next command are its output. Every command is run.
//   - The line before the fence may be <!-- run: background -->: the block's
//     command keeps running; what is shown is how its output begins. Or
//     <!-- run: no, REASON -->.
//   - In shown output "…" matches anything within a line, and the spaces
//     before it for as many as a column takes that keeps to its right edge; a
//     line of "…" alone matches any number of lines, and every RFC 3339 time
//     for any other.
//   - A block fenced as go that begins with "package main" must build. The
//     line before a fence may be <!-- file: NAME -->: the block is written to
//     that file, in the folder where the shell is.
func Parse(name, text string) (steps []Step, programs []Program, err error) {
	fail := func(line int, format string, args ...any) ([]Step, []Program, error) {
		return nil, nil, fmt.Errorf("%s:%d: "+format, append([]any{name, line}, args...)...)
	}
	lines := strings.Split(text, "\n")
	section, part := "", ""
	for i := 0; i < len(lines); i++ {
		if heading, is := strings.CutPrefix(lines[i], "## "); is {
			section, part = heading, ""
		} else if heading, is := strings.CutPrefix(lines[i], "### "); is {
			part = heading
		}
		language, fenced := strings.CutPrefix(lines[i], "```")
		if !fenced {
			continue
		}
		begin := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			return fail(begin, "the block that begins here does not end")
		}
		block := lines[begin:i]
		if file := fileDirective.FindStringSubmatch(lines[max(begin-2, 0)]); file != nil {
			steps = append(steps, Step{Line: begin, Section: section, Part: part, Command: "cat >" + file[1] + " <<'END OF FILE'\n" + strings.Join(block, "\n") + "\nEND OF FILE"})
			continue
		}
		if language == "go" && len(block) > 0 && block[0] == "package main" {
			programs = append(programs, Program{begin + 1, strings.Join(block, "\n") + "\n"})
		}
		if language != "sh" {
			continue
		}
		var directive []string
		if before := lines[max(begin-2, 0)]; strings.HasPrefix(before, "<!-- run:") {
			if directive = runDirective.FindStringSubmatch(before); directive == nil {
				return fail(begin-1, "%q is neither <!-- run: background --> nor <!-- run: no, REASON -->", before)
			}
		}
		first, continued := len(steps), false
		for n, text := range block {
			command, isCommand := strings.CutPrefix(text, "$ ")
			switch last := len(steps) - 1; {
			case continued:
				steps[last].Command += "\n" + text
			case isCommand:
				steps = append(steps, Step{Line: begin + 1 + n, Section: section, Part: part, Command: command})
				if directive != nil {
					steps[last+1].Skip = directive[2]
				}
			case len(steps) == first:
				return fail(begin+1, "a block fenced as sh begins with a command after %q", "$ ")
			default:
				steps[last].Output += text + "\n"
			}
			continued = (continued || isCommand) && strings.HasSuffix(text, `\`)
		}
		if directive != nil && directive[2] == "" && len(steps) > first {
			steps[len(steps)-1].Background = true
		}
	}
	if len(steps) == 0 {
		return nil, nil, fmt.Errorf("%s has no command: blocks fenced as sh, commands after %q", name, "$ ")
	}
	return steps, programs, nil
}

var runDirective = regexp.MustCompile(`^<!-- run: (background|no, (.+)) -->$`)

var fileDirective = regexp.MustCompile(`^<!-- file: ([a-zA-Z0-9._/-]+) -->$`)

var rfc3339 = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

var anything = regexp.MustCompile(` *…`)

// Matches reports whether got is what the page shows, or, if not whole, begins
// with it.
func Matches(shown, got string, whole bool) bool {
	var re strings.Builder
	re.WriteString(`\A`)
	for line := range strings.Lines(rfc3339.ReplaceAllLiteralString(shown, "TIME")) {
		line = strings.TrimRight(line, " \n")
		if line == "…" {
			re.WriteString(`(?:.*\n)*?`)
			continue
		}
		re.WriteString(anything.ReplaceAllStringFunc(regexp.QuoteMeta(line), func(s string) string {
			if strings.HasPrefix(s, " ") {
				return ` +.*`
			}
			return `.*`
		}))
		re.WriteString(` *\n`)
	}
	if whole {
		re.WriteString(`\z`)
	}
	if got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	return regexp.MustCompile(re.String()).MatchString(rfc3339.ReplaceAllLiteralString(got, "TIME"))
}

// Difference says from which shown line on got is something else.
func Difference(shown, got string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(shown, "\n"), "\n")
	for i, line := range lines {
		if !Matches(strings.Join(lines[:i+1], ""), got, false) {
			return fmt.Sprintf("not printed as line %d: %s", i+1, strings.TrimSuffix(line, "\n"))
		}
	}
	return "more was printed than is shown"
}
