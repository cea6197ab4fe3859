package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// Bash offers what the table of commands has.
func TestCompletionForBash(t *testing.T) {
	testkit.Program(t, "bash")
	dir := t.TempDir()
	script := filepath.Join(dir, "completion")
	writeFile(t, script, cli(t, "", "completion", "bash").stdout)
	writeFile(t, filepath.Join(dir, "a log.txt"), "")
	// complete returns what bash offers for a line, whose last word is to be completed.
	complete := func(words ...string) string {
		t.Helper()
		cmd := exec.Command("bash", "-c", `set -u; source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rollway; printf '%s\n' "${COMPREPLY[@]-}"`, script)
		cmd.Args = append(cmd.Args, words...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v", words, err)
		}
		return strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), ",")
	}
	for _, tt := range []struct{ line, want string }{
		{"rollway,se", "serve,send"},
		{"rollway,qu", "query"},
		{"rollway,query,-o,", "text,json,csv,table,chart"},
		{"rollway,query,-o,=", "text,json,csv,table,chart"},
		{"rollway,query,--o,=,js", "json"},
		{"rollway,query,-si", "-since"},
		{"rollway,query,-since,1", ""},
		{"rollway,query,-utc,-li", "-limit"},
		{"rollway,send,a", "a log.txt"},
		{"rollway,serve,-config,a", "a log.txt"},
		{"rollway,serve,-durability,", "buffered,synced"},
		{"rollway,relay,-balance,r", "round-robin"},
		{"rollway,clients,-sort,by", "bytes"},
		{"rollway,help,ver", "verify,version"},
		{"rollway,completion,", "bash,zsh"},
		{"rollway,nothing,", ""},
	} {
		if got := complete(strings.Split(tt.line, ",")...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
	for _, cmd := range commands() {
		flags, _ := cmd.flags()
		got := strings.Split(complete("rollway", cmd.name, "-"), ",")
		flags.VisitAll(func(f *flag.Flag) {
			if !slices.Contains(got, "-"+f.Name) {
				t.Errorf("bash does not offer -%s of %s", f.Name, cmd.name)
			}
		})
	}
}

// zsh completes on a terminal what the table of commands has.
func TestCompletionForZsh(t *testing.T) {
	testkit.Program(t, "zsh")
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "_rollway"), cli(t, "", "completion", "zsh").stdout)
	writeFile(t, filepath.Join(dir, "access.txt"), "")
	tests := []struct{ line, want string }{
		{"rollway verif", "rollway verify "},
		{"rollway query -sin", "rollway query -since "},
		{"rollway query -o js", "rollway query -o json "},
		{"rollway relay -balance ro", "rollway relay -balance round-robin "},
		{"rollway help expl", "rollway help explain "},
		{"rollway completion z", "rollway completion zsh "},
		{"rollway send acc", "rollway send access.txt "},
		{"rollway serve -config acc", "rollway serve -config access.txt "},
		{"rollway query -since 1h -limi", "rollway query -since 1h -limit "},
	}
	// A widget writes the line after the completion to a file; the marker tells that the shell
	// has come so far.
	var b strings.Builder
	b.WriteString(`zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; show() { print -r -- "$BUFFER" >>shown; BUFFER= }; zle -N show; bindkey "^Xs" show; bindkey "^I" complete-word; PS1=; echo rea""dy'
zpty -r -m z text '*ready*' || exit 1
`)
	for i, tt := range tests {
		fmt.Fprintf(&b, "zpty -n -w z $'%s\\t\\C-Xs'\nuntil [ \"$(wc -l <shown 2>/dev/null)\" -ge %d ] 2>/dev/null; do sleep 0.02; done\n", tt.line, i+1)
	}
	b.WriteString("zpty -d z\n")
	cmd := exec.CommandContext(t.Context(), "timeout", "60", "zsh", "-f", "-c", b.String())
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("zsh: %v\n%s", err, out)
	}
	shown, _ := os.ReadFile(filepath.Join(dir, "shown"))
	got := strings.Split(string(shown), "\n")
	for i, tt := range tests {
		if i >= len(got) || got[i] != tt.want {
			t.Errorf("%s: got %q, want %q", tt.line, got[min(i, len(got)-1)], tt.want)
		}
	}
}
