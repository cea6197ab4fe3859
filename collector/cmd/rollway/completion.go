package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

var completionCommand = &command{
	name:    "completion",
	summary: "print what completes command lines in a shell",
	args:    "bash|zsh",
	needs:   "bash or zsh",
	most:    1,
	help: `
Prints a script for bash or zsh that completes commands, flags, the words that a
flag takes, and files.

Examples:
  source <(rollway completion bash)     in this shell; ~/.bashrc keeps it
  rollway completion bash >/etc/bash_completion.d/rollway
  rollway completion zsh >"${fpath[1]}/_rollway"
`,
}

// init completes completionCommand, whose action refers to the list that contains it.
func init() {
	scripts := map[string]func() string{"bash": bashCompletion, "zsh": zshCompletion}
	completionCommand.setup = func(*flag.FlagSet) action {
		return func(c *call, args []string) error {
			script := scripts[args[0]]
			if script == nil {
				return usagef("there is completion for bash and zsh, and not for %q", args[0])
			}
			text := script()
			return c.show(map[string]string{"shell": args[0], "script": text}, text)
		}
	}
}

// A completer says what may come at one place of a command line.
type completer struct {
	words []string
	files bool
}

// ofArguments completes what is no flag.
func (cmd *command) ofArguments() (c completer) {
	switch {
	case strings.Contains(cmd.args, "COMMAND"):
		for _, other := range commands() {
			c.words = append(c.words, other.name)
		}
	case cmd == completionCommand:
		c.words = strings.Split(cmd.args, "|")
	default:
		c.files = takesFiles(cmd.args)
	}
	return c
}

// ofValue completes the value of a flag.
func (f *describedFlag) ofValue() completer {
	return completer{f.Words, takesFiles(f.Value)}
}

// takesFiles reports whether text, as "[FILE|FOLDER…]", has the name of a file's place.
func takesFiles(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return r < 'A' || r > 'Z' }),
		func(word string) bool {
			return slices.Contains([]string{"FILE", "FILES", "FOLDER", "DIR", "DATA", "DEST"}, word)
		})
}

// bash returns the assignments of a case in the script for bash.
func (c completer) bash() string {
	return fmt.Sprintf("words='%s' files=%t", strings.Join(c.words, " "), c.files)
}

func bashCompletion() string {
	var values, flags, arguments strings.Builder
	var names []string
	for _, cmd := range commands() {
		names = append(names, cmd.name)
		var own []string
		for _, f := range cmd.described().Flags {
			own = append(own, "-"+f.Name)
			if f.Value != "" {
				fmt.Fprintf(&values, "\t%s:-%s) %s ;;\n", cmd.name, f.Name, f.ofValue().bash())
			}
		}
		fmt.Fprintf(&flags, "\t%s) words='%s' ;;\n", cmd.name, strings.Join(own, " "))
		fmt.Fprintf(&arguments, "\t%s) %s ;;\n", cmd.name, cmd.ofArguments().bash())
	}
	return strings.NewReplacer("COMMANDS", strings.Join(names, " "), "VALUES\n", values.String(), "FLAGS\n", flags.String(), "ARGUMENTS\n", arguments.String()).Replace(bashScript)
}

// bashScript works in bash 3.2, which macOS has. A word "=" is between a flag and its value.
const bashScript = `# Completion of rollway for bash, made by 'rollway completion bash'.
_rollway() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= files=false
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W 'COMMANDS' -- "$cur"))
		return
	fi
	case ${COMP_WORDS[1]}:${prev/#--/-} in
VALUES
	*)
		case $cur in
		-*)
			case ${COMP_WORDS[1]} in
FLAGS
			esac ;;
		*)
			case ${COMP_WORDS[1]} in
ARGUMENTS
			esac ;;
		esac ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	if $files; then
		local IFS=$'\n'
		COMPREPLY=($(compgen -f -- "$cur"))
		compopt -o filenames 2>/dev/null
	fi
}
complete -F _rollway rollway
`

// zsh returns the action of a specification of _arguments.
func (c completer) zsh() string {
	switch {
	case c.files:
		return "_files"
	case len(c.words) > 0:
		return "(" + strings.Join(c.words, " ") + ")"
	}
	return "()" // there is nothing to complete
}

// zshText quotes text within single quotes for _arguments and _describe.
var zshText = strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`, "\n", " ", `\`, `\\`)

func zshCompletion() string {
	var names, flags strings.Builder
	for _, cmd := range commands() {
		fmt.Fprintf(&names, "\t\t'%s:%s'\n", cmd.name, zshText.Replace(cmd.summary))
		fmt.Fprintf(&flags, "\t%s)\n\t\t_arguments \\\n", cmd.name)
		for _, f := range cmd.described().Flags {
			usage, _, _ := strings.Cut(f.Usage, ";")
			value := ""
			if f.Value != "" {
				value = ":" + f.Value + ":" + f.ofValue().zsh()
			}
			fmt.Fprintf(&flags, "\t\t\t'*-%s[%s]%s' \\\n", f.Name, zshText.Replace(usage), value)
		}
		fmt.Fprintf(&flags, "\t\t\t'*:argument:%s' ;;\n", cmd.ofArguments().zsh())
	}
	return strings.NewReplacer("COMMANDS\n", names.String(), "FLAGS\n", flags.String()).Replace(zshScript)
}

const zshScript = `#compdef rollway
# Completion of rollway for zsh, made by 'rollway completion zsh'.
_rollway() {
	if (( CURRENT == 2 )); then
		local -a list=(
COMMANDS
		)
		_describe command list
		return
	fi
	shift words
	(( CURRENT-- ))
	case $words[1] in
FLAGS
	esac
}
if [ "$funcstack[1]" = _rollway ]; then
	_rollway "$@"
else
	compdef _rollway rollway
fi
`
