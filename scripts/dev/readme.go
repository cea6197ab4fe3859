package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

const (
	homepage          = "https://github.com/rollway/rollway"
	foregroundTimeout = 5 * time.Minute
	backgroundTimeout = 10 * time.Minute // until what it should print is there; make run builds first
	interruptTimeout  = 30 * time.Second
)

// readme does what README.md tells a newcomer to do, in an empty folder and in
// the order of the page, and compares what is printed with what the page
// shows. A git clone of the homepage gets this checkout's last commit. See
// parseReadme for the convention.
func readme([]string) error {
	text, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	steps, programs, err := parseReadme(string(text))
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
		if st.skip != "" {
			skipped++
			fmt.Printf("SKIP  README.md:%d %s: %s\n", st.line, st.command, st.skip)
			continue
		}
		count(st.line, st.command, s.run(st))
		if failed > 0 {
			break // later steps build on earlier ones
		}
	}
	if failed == 0 {
		for _, bg := range s.background {
			count(bg.line, bg.command+" (stopped with Ctrl-C)", bg.stop())
		}
		for _, p := range programs {
			count(p.line, "go program", s.build(p))
		}
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 {
		return errors.New("README.md does not do what it says")
	}
	return nil
}

// session is one newcomer's terminal.
type session struct {
	base       string // removed at the end
	dir        string // where the next command runs
	env        []string
	background []*process
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
	s := &session{base: base, dir: filepath.Join(base, "empty")}
	for _, dir := range []string{s.dir, filepath.Join(base, "home"), filepath.Join(base, "bin")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	// A home of its own, but the module and build caches of this machine.
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", withStderr(err))
	}
	caches := strings.Fields(string(out))
	if len(caches) != 2 {
		return nil, fmt.Errorf("go env GOMODCACHE GOCACHE printed %q, want two folders", out)
	}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GOWORK=") && !strings.HasPrefix(kv, "MAKE") { // a newcomer has neither
			s.env = append(s.env, kv)
		}
	}
	s.env = append(s.env,
		"HOME="+filepath.Join(base, "home"),
		"GOMODCACHE="+caches[0], "GOCACHE="+caches[1],
		"GOBIN="+filepath.Join(base, "bin"),
		"PATH="+filepath.Join(base, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"), // or nothing built in another run's folder would do
		"GOMEMLIMIT=off", // or the collector would tell of this machine's control group
		"LC_ALL=C.UTF-8",
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=url."+root+".insteadOf", "GIT_CONFIG_VALUE_0="+homepage,
		"GIT_CONFIG_KEY_1=url."+root+".insteadOf", "GIT_CONFIG_VALUE_1="+homepage+".git",
		"GIT_CONFIG_KEY_2=safe.directory", "GIT_CONFIG_VALUE_2=*",
	)
	return s, nil
}

func (s *session) close() {
	for _, bg := range s.background {
		bg.kill()
	}
	if err := os.RemoveAll(s.base); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// process is a running command.
type process struct {
	step
	cmd  *exec.Cmd
	out  testkit.Buffer
	done chan struct{} // closed when the command has ended
	err  error         // of cmd.Wait; read after done
}

func (s *session) start(ctx context.Context, st step, script string) (*process, error) {
	p := &process{step: st, done: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, "bash", "-c", script)
	p.cmd.Dir, p.cmd.Env = s.dir, s.env
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.WaitDelay = time.Minute // a busy machine may be late with what was printed
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (s *session) run(st step) error {
	if st.background {
		return s.runBackground(st)
	}
	// The folder in which the command ends is the next one's.
	pwd := filepath.Join(s.base, "pwd")
	ctx, cancel := context.WithTimeout(context.Background(), foregroundTimeout)
	defer cancel()
	p, err := s.start(ctx, st, st.command+"\nrc=$?; pwd >'"+pwd+"'; exit $rc")
	if err != nil {
		return err
	}
	<-p.done
	if p.err != nil {
		return fmt.Errorf("%w; it printed:\n%s", p.err, p.out.String())
	}
	dir, err := os.ReadFile(pwd)
	if err != nil {
		return err
	}
	s.dir = strings.TrimSpace(string(dir))
	if st.output != "" && !matches(st.output, p.out.String(), true) {
		return fmt.Errorf("%s; README shows:\n%s\nit printed:\n%s", difference(st.output, p.out.String()), st.output, p.out.String())
	}
	return nil
}

func (s *session) runBackground(st step) error {
	p, err := s.start(context.Background(), st, "exec "+st.command)
	if err != nil {
		return err
	}
	s.background = append(s.background, p)
	deadline := time.After(backgroundTimeout)
	for {
		if matches(st.output, p.out.String(), false) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-p.done:
			return fmt.Errorf("ended early: %v; it printed:\n%s", p.err, p.out.String())
		case <-deadline:
			return fmt.Errorf("%s; README shows:\n%s\nafter %v it had printed:\n%s", difference(st.output, p.out.String()), st.output, backgroundTimeout, p.out.String())
		}
	}
}

// stop sends what Ctrl-C sends and waits for the end. The exit code of make
// after a Ctrl-C is not zero whatever its command returned, so it says nothing.
func (p *process) stop() error {
	select {
	case <-p.done:
		return fmt.Errorf("it had ended before: %v; it printed:\n%s", p.err, p.out.String())
	default:
	}
	if err := interruptGroup(p.cmd); err != nil {
		return fmt.Errorf("interrupt: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(interruptTimeout):
		return fmt.Errorf("still running %v after Ctrl-C; it printed:\n%s", interruptTimeout, p.out.String())
	}
}

func (p *process) kill() {
	select {
	case <-p.done:
	default:
		killGroup(p.cmd)
		<-p.done
	}
}

// build compiles a whole program that the page shows, inside the clone.
func (s *session) build(p program) error {
	dir := filepath.Join(s.base, "empty", "rollway", fmt.Sprintf("readme%d", p.line))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(p.source), 0o644); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", os.DevNull, ".")
	cmd.Dir, cmd.Env = dir, append(s.env, "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}
