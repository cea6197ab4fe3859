package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/page"
)

const (
	homepage          = "https://github.com/rollway/rollway"
	foregroundTimeout = 10 * time.Minute // a cold build on a busy machine
	backgroundTimeout = 10 * time.Minute // until the output is there; make run builds first
	interruptTimeout  = 30 * time.Second
)

// readme does what README.md, or the pages named, tell a newcomer to do, each in an empty
// folder and in the order of the page, and compares what is printed with what the page shows.
// A git clone of the homepage gets this checkout's last commit. -o writes what was typed, what
// was printed and how long each step took. See page.Parse for the convention.
func readme(args []string) error {
	flags := flag.NewFlagSet("readme", flag.ExitOnError)
	to := flags.String("o", "", "write the transcript to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pages := flags.Args()
	if len(pages) == 0 {
		pages = []string{"README.md"}
	}
	var transcript strings.Builder
	var errs []error
	for _, name := range pages {
		errs = append(errs, follow(name, &transcript))
	}
	if *to != "" {
		errs = append(errs, os.WriteFile(*to, []byte(transcript.String()), 0o644))
	}
	return errors.Join(errs...)
}

// follow does what a page says.
func follow(name string, transcript *strings.Builder) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	steps, programs, err := page.Parse(name, string(text))
	if err != nil {
		return err
	}
	s, err := newSession()
	if err != nil {
		return err
	}
	defer s.close()
	begin := time.Now()
	fmt.Fprintf(transcript, "%s\n%s\n\n", name, strings.Repeat("=", len(name)))
	var passed, failed, skipped int
	count := func(line int, what string, began time.Time, err error) {
		what, _, _ = strings.Cut(what, "\n")
		if err != nil {
			failed++
			fmt.Printf("FAIL  %s:%d %s\n      %v\n", name, line, what, err)
			return
		}
		passed++
		fmt.Printf("ok    %s:%d %s (%.1f s)\n", name, line, what, time.Since(began).Seconds())
	}
	for _, st := range steps {
		began := time.Now()
		switch {
		case failed > 0: // later steps build on earlier ones
		case st.Skip != "":
			skipped++
			fmt.Printf("SKIP  %s:%d %s: %s\n", name, st.Line, st.Command, st.Skip)
		default:
			count(st.Line, st.Command, began, s.run(st))
			fmt.Fprintf(transcript, "$ %s\n%s[%.1f s]\n\n", st.Command, s.plain(s.printed(st)), time.Since(began).Seconds())
		}
	}
	if failed == 0 {
		for _, j := range s.jobs {
			count(j.Line, j.Command+" (stopped with Ctrl-C)", time.Now(), s.interrupt(j))
		}
		for _, p := range programs {
			count(p.Line, "go program", time.Now(), s.build(p))
		}
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	fmt.Fprintf(transcript, "%s: %d steps in %.0f s\n\n\n", name, passed, time.Since(begin).Seconds())
	if failed > 0 || passed == 0 {
		return errors.New(name + " does not do what it says")
	}
	return nil
}

// printed returns what a step has printed so far.
func (s *session) printed(st page.Step) string {
	text, _ := os.ReadFile(s.outputOf(st)) // none yet
	return string(text)
}

func (s *session) outputOf(st page.Step) string {
	return filepath.Join(s.base, fmt.Sprint("line", st.Line))
}

// plain returns text without the names of this session's folders.
func (s *session) plain(text string) string {
	return strings.NewReplacer(filepath.Join(s.base, "empty"), "~", filepath.Join(s.base, "home"), "~", s.base, "~").Replace(text)
}

// session is one newcomer's shell.
type session struct {
	base    string // removed at the end
	shell   *exec.Cmd
	stdin   io.Writer
	answers chan string // lines that the shell prints; closed when it has ended
	jobs    []job
}

// A job is a step in the background.
type job struct {
	page.Step
	pid    string
	output string // file
}

func newSession() (*session, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	base, err := os.MkdirTemp("", "rollway-readme")
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"empty", "home", "bin"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			return nil, err
		}
	}
	// A home of its own, but the module and build caches of this machine.
	caches, err := output("", "go", "env", "GOMODCACHE", "GOCACHE")
	if err != nil {
		return nil, err
	}
	modules, builds, _ := strings.Cut(caches, "\n")
	s := &session{base: base, shell: exec.Command("bash"), answers: make(chan string)}
	s.shell.Dir = filepath.Join(base, "empty")
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GOWORK=") && !strings.HasPrefix(kv, "MAKE") { // a newcomer has neither
			s.shell.Env = append(s.shell.Env, kv)
		}
	}
	s.shell.Env = append(s.shell.Env,
		"HOME="+filepath.Join(base, "home"),
		"GOMODCACHE="+modules, "GOCACHE="+builds,
		"GOBIN="+filepath.Join(base, "bin"),
		"PATH="+filepath.Join(base, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"), // or builds in another folder could not be used again
		"GOMEMLIMIT=off", // or the collector would report this machine's control group
		"LC_ALL=C.UTF-8",
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=url."+root+".insteadOf", "GIT_CONFIG_VALUE_0="+homepage,
		"GIT_CONFIG_KEY_1=url."+root+".insteadOf", "GIT_CONFIG_VALUE_1="+homepage+".git",
		"GIT_CONFIG_KEY_2=safe.directory", "GIT_CONFIG_VALUE_2=*",
	)
	if s.stdin, err = s.shell.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := s.shell.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.shell.Stderr = os.Stderr
	go func() {
		for in := bufio.NewScanner(answers); in.Scan(); {
			s.answers <- in.Text()
		}
		close(s.answers)
	}()
	if err := s.shell.Start(); err != nil {
		return nil, err
	}
	// With job control each command is a process group, as at a terminal.
	_, err = s.ask(interruptTimeout, "set -m; echo")
	return s, err
}

// ask runs a script in the shell, which prints one line, and returns that.
func (s *session) ask(timeout time.Duration, script string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(s.stdin, script+"\n", args...); err != nil {
		return "", err
	}
	select {
	case answer, ok := <-s.answers:
		if !ok {
			return "", errors.New("the shell has ended")
		}
		return answer, nil
	case <-time.After(timeout):
		return "", fmt.Errorf("no end after %v", timeout)
	}
}

// close kills what still runs.
func (s *session) close() {
	_, err := s.ask(interruptTimeout, `for j in $(jobs -p); do kill -KILL -- -$j; done; echo`)
	if err != nil {
		err = s.shell.Process.Kill()
	}
	if err := errors.Join(err, os.RemoveAll(s.base)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (s *session) run(st page.Step) error {
	file := s.outputOf(st)
	printed := func() string { return s.printed(st) }
	if st.Background {
		pid, err := s.ask(foregroundTimeout, "{ exec %s\n} </dev/null >%s 2>&1 & echo $!", st.Command, file)
		if err != nil {
			return err
		}
		s.jobs = append(s.jobs, job{st, pid, file})
		for begin := time.Now(); !page.Matches(st.Output, printed(), false); time.Sleep(50 * time.Millisecond) {
			running, err := s.ask(foregroundTimeout, "kill -0 %s 2>/dev/null && echo yes || echo no", pid)
			if err == nil && running == "yes" && time.Since(begin) < backgroundTimeout {
				continue
			}
			return fmt.Errorf("running: %s, %v; %s; the page shows:\n%s\nit printed:\n%s", running, err, page.Difference(st.Output, printed()), st.Output, printed())
		}
		return nil
	}
	status, err := s.ask(foregroundTimeout, "{ %s\n} </dev/null >%s 2>&1; echo $?", st.Command, file)
	switch {
	case err == nil && status != "0":
		err = errors.New("exit status " + status)
		fallthrough
	case err != nil:
		return fmt.Errorf("%w; it printed:\n%s", err, printed())
	case st.Output != "" && !page.Matches(st.Output, printed(), true):
		return fmt.Errorf("%s; the page shows:\n%s\nit printed:\n%s", page.Difference(st.Output, printed()), st.Output, printed())
	}
	return nil
}

// interrupt sends what Ctrl-C sends and waits for the end. The exit code of make after
// a Ctrl-C is not zero whatever its command returned, so it is ignored.
func (s *session) interrupt(j job) error {
	answer, err := s.ask(interruptTimeout, "kill -INT -- -%s && { wait %s; echo ended; } || echo it had ended before", j.pid, j.pid)
	if err == nil && answer == "ended" {
		return nil
	}
	text, _ := os.ReadFile(j.output)
	return fmt.Errorf("after Ctrl-C: %s %v; it printed:\n%s", answer, err, text)
}

// build compiles a whole program that the page shows, inside the clone.
func (s *session) build(p page.Program) error {
	dir := filepath.Join(s.base, "empty", "rollway", fmt.Sprintf("readme%d", p.Line))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(p.Source), 0o644); err != nil {
		return err
	}
	_, err := output(dir, "go", "build", "-o", os.DevNull, ".")
	return err
}
