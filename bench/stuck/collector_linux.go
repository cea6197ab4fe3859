package stuck

import (
	"net"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/rollway/rollway/bench/internal/child"
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
	program, err := child.BuildRollway(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "serve", "-listen", s.HTTP, "-listen-tcp", s.TCP, "-listen-grpc", "", "-data", filepath.Join(dir, "data"))
	// A group of its own: if the shell that started us ends, our group is orphaned,
	// and the kernel wakes its stopped processes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := child.Program(cmd, s.HTTP)
	if err != nil {
		return nil, err
	}
	// The kernel takes connections for a stopped process that listens.
	c, err := net.Dial("tcp", s.TCP)
	if err == nil {
		c.Close()
		err = cmd.Process.Signal(syscall.SIGSTOP)
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p.Kill, nil
}
