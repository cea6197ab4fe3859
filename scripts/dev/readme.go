package main

import (
	"bufio"
	"errors"
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
	foregroundTimeout = 5 * time.Minute
	backgroundTimeout = 10 * time.Minute // until the output is there; make run builds first
	interruptTimeout  = 30 * time.Second
)

// readme does what README.md tells a newcomer to do, in an empty folder and in the
// order of the page, and compares what is printed with what the page shows. A git
// clone of the homepage gets this checkout's last commit. See page.Parse for the
// convention.
func readme([]string) error {
	text, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	steps, programs, err := page.Parse("README.md", string(text))
	if err != nil {
		return err
	}
	s, err := newSession()
	if err != nil {
		return err
	}
	defer s.close()
	var passed, failed, skipped int
	count := func(line int, what string, err error) {
		if err != nil {
			failed++
			fmt.Printf("FAIL  README.md:%d %s\n      %v\n", line, what, err)
			return
		}
		passed++
		fmt.Printf("ok    README.md:%d %s\n", line, what)
	}
	for _, st := range steps {
		switch {
		case failed > 0: // later steps build on earlier ones
		case st.Skip != "":
			skipped++
			fmt.Printf("SKIP  README.md:%d %s: %s\n", st.Line, st.Command, st.Skip)
		default:
			count(st.Line, st.Command, s.run(st))
		}
	}
	if failed == 0 {
		for _, j := range s.jobs {
			count(j.Line, j.Command+" (stopped with Ctrl-C)", s.interrupt(j))
		}
		for _, p := range programs {
			count(p.Line, "go program", s.build(p))
		}
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 {
		return errors.New("README.md does not do what it says")
	}
	return nil
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
	file := filepath.Join(s.base, fmt.Sprint("line", st.Line))
	printed := func() string {
		text, _ := os.ReadFile(file) // none yet
		return string(text)
	}
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
			return fmt.Errorf("running: %s, %v; %s; README shows:\n%s\nit printed:\n%s", running, err, page.Difference(st.Output, printed()), st.Output, printed())
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
		return fmt.Errorf("%s; README shows:\n%s\nit printed:\n%s", page.Difference(st.Output, printed()), st.Output, printed())
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
