package stuck

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/lines"
)

// Try runs one try.
func (s Settings) Try(w Writer, situation, act string) (Try, error) {
	t := Try{Writer: w.Name, Own: w.Own, Situation: situation, Act: act}
	dir, err := os.MkdirTemp(s.Dir, "rollway-stuck-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	j := job{Writer: w.Name, Situation: situation, Act: act, Last: w.Last, Dir: dir, HTTP: s.HTTP, TCP: s.TCP, Mount: filepath.Join(dir, "disk")}
	if situation == Absent {
		j.HTTP = s.Nobody
	}
	if err := os.Mkdir(j.Mount, 0o700); err != nil {
		return t, err
	}
	said, err := s.child(&t, &j)
	if err != nil {
		return t, err
	}
	t.Said = notDelivered.MatchString(said)
	text, err := os.ReadFile(j.reportPath())
	if err != nil && t.crashed() {
		return t, nil // before it could report
	}
	if err != nil {
		return t, fmt.Errorf("no report: %w: %s", err, said)
	}
	var r outcome
	if err := json.Unmarshal(text, &r); err != nil {
		return t, err
	}
	t.Calls, t.InCall, t.Longest, t.Ledgers, t.Dropped, t.Failed = r.Calls, r.InCall, r.Longest, r.Ledgers, r.Dropped, r.Failed
	if act == Close && !t.Hung {
		t.Took = r.Took
	}
	return t, t.audit(filepath.Join(dir, "healthy.log"), r.Returned)
}

// notDelivered is what our Logger says of its output named stuck.
var notDelivered = regexp.MustCompile(`(?m)\bstuck\b.*(pending|lost|dropped|not delivered|has not returned)`)

// child runs the job in a process of its own.
func (s Settings) child(t *Try, j *job) (said string, err error) {
	r, w, err := os.Pipe() // for the situation Pipe: r is never read
	if err != nil {
		return "", err
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	cmd, err := child.Command(ctx, role, j)
	if err != nil {
		return "", err
	}
	cmd.Env = append(cmd.Env, "GOTRACEBACK=none")
	cmd.ExtraFiles = []*os.File{w}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if t.Situation == Disk {
		cmd.SysProcAttr = child.Namespace()
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	begin := time.Now()
	if line == ready && t.Act == SIGTERM {
		err = cmd.Process.Signal(syscall.SIGTERM)
	}
	waitErr := cmd.Wait()
	t.Took = time.Since(begin)
	t.Hung = ctx.Err() != nil
	t.Status = cmd.ProcessState.ExitCode()
	if !ends(t.Act) && !t.Hung && waitErr != nil && !t.crashed() {
		return "", fmt.Errorf("%w: %s", waitErr, stderr.Bytes())
	}
	if line != ready && !t.Hung {
		return "", fmt.Errorf("the child did not begin: %v: %s", errors.Join(err, waitErr), stderr.Bytes())
	}
	return stderr.String(), nil
}

var messageText = regexp.MustCompile(`"line (\d+) (\d+) x{180}\."`)

// audit compares the healthy output with the calls that have returned.
func (t *Try) audit(path string, returned []int) error {
	f, err := os.Open(path)
	if err != nil || returned == nil {
		return err
	}
	defer f.Close()
	a := lines.NewAudit(len(returned), func(line []byte) (producer, number int, ok bool) {
		m := messageText.FindSubmatch(line)
		if m == nil || line[len(line)-1] != '\n' {
			return 0, 0, false
		}
		producer, _ = strconv.Atoi(string(m[1]))
		number, _ = strconv.Atoi(string(m[2]))
		return producer, number, true
	})
	a.Skip = notLines.Match
	err = a.Read(f)
	t.Disorder = a.Torn + a.Repeated + a.Reordered
	for p, n := range returned {
		t.Delivered += n - a.Lost(p, n)
	}
	return err
}

// notLines are the lines of the healthy output that no producer wrote.
var notLines = regexp.MustCompile("the last line|signal: |lines dropped")
