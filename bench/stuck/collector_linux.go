package stuck

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/bench/internal/rollwaybin"
	"github.com/rollway/rollway/internal/testkit"
)

// StopCollector builds the collector, starts it in dir, and stops it by a
// signal when it serves. It fills in the addresses of s. end kills it.
func (s *Settings) StopCollector(dir string) (end func(), err error) {
	for _, addr := range []*string{&s.HTTP, &s.TCP, &s.Nobody} {
		if *addr, err = testkit.FreeAddr(); err != nil {
			return nil, err
		}
	}
	program, err := rollwaybin.Build(dir)
	if err != nil {
		return nil, err
	}
	var said testkit.Buffer
	cmd := exec.Command(program, "serve", "-listen", s.HTTP, "-listen-tcp", s.TCP, "-listen-grpc", "", "-data", filepath.Join(dir, "data"))
	cmd.Stdout, cmd.Stderr = &said, &said
	// A group of its own: if the shell that started us ends, our group is orphaned,
	// and the kernel wakes its stopped processes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if s.serves() {
			break
		}
		if time.Since(begin) > time.Minute {
			end()
			return nil, fmt.Errorf("the collector does not serve: %s", strings.TrimSpace(said.String()))
		}
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

func (s *Settings) serves() bool {
	c, err := net.Dial("tcp", s.TCP)
	if err != nil {
		return false
	}
	c.Close()
	r, err := http.Get("http://" + s.HTTP + "/readyz")
	if err != nil {
		return false
	}
	r.Body.Close()
	return r.StatusCode == http.StatusOK
}
