package main

import (
	"fmt"
	"regexp"
	"strings"
)

// step is one command of README.md with the output shown below it.
type step struct {
	line       int // of the command in the page, from 1
	command    string
	output     string // as shown; "" compares nothing
	background bool   // keeps running until the page ends
	skip       string // why it is not run
}

// program is a whole Go program shown in README.md.
type program struct {
	line   int
	source string
}

// parseReadme reads the page by this convention:
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
//   - A block fenced as go that begins with "package main" must build.
func parseReadme(text string) (steps []step, programs []program, err error) {
	fail := func(line int, format string, args ...any) ([]step, []program, error) {
		return nil, nil, fmt.Errorf("README.md:%d: "+format, append([]any{line}, args...)...)
	}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
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
		if language == "go" && len(block) > 0 && block[0] == "package main" {
			programs = append(programs, program{begin + 1, strings.Join(block, "\n") + "\n"})
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
				steps[last].command += "\n" + text
			case isCommand:
				steps = append(steps, step{line: begin + 1 + n, command: command})
				if directive != nil {
					steps[last+1].skip = directive[2]
				}
			case len(steps) == first:
				return fail(begin+1, "a block fenced as sh begins with a command after %q", "$ ")
			default:
				steps[last].output += text + "\n"
			}
			continued = (continued || isCommand) && strings.HasSuffix(text, `\`)
		}
		if directive != nil && directive[2] == "" && len(steps) > first {
			steps[len(steps)-1].background = true
		}
	}
	if len(steps) == 0 {
		return nil, nil, fmt.Errorf("README.md has no command: blocks fenced as sh, commands after %q", "$ ")
	}
	return steps, programs, nil
}

var runDirective = regexp.MustCompile(`^<!-- run: (background|no, (.+)) -->$`)

var rfc3339 = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

var anything = regexp.MustCompile(` *…`)

// matches reports whether got is what the page shows, or, if not whole, begins
// with it.
func matches(shown, got string, whole bool) bool {
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

// difference says from which shown line on got is something else.
func difference(shown, got string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(shown, "\n"), "\n")
	for i, line := range lines {
		if !matches(strings.Join(lines[:i+1], ""), got, false) {
			return fmt.Sprintf("not printed as line %d: %s", i+1, strings.TrimSuffix(line, "\n"))
		}
	}
	return "more was printed than is shown"
}
