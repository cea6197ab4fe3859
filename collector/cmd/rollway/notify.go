package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector"
)

// A supervisor is the service manager that has started this process and wants to know how
// it fares, as sd_notify(3) of systemd describes. A nil supervisor is told nothing.
type supervisor struct {
	conn     *net.UnixConn
	watchdog time.Duration // it restarts a process that is silent for so long; 0: never
}

// newSupervisor returns the one that the environment names, or nil.
func newSupervisor(log *slog.Logger) *supervisor {
	name := os.Getenv("NOTIFY_SOCKET") // with @ before the name of an abstract socket, as package net takes it
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		log.Warn("the service manager cannot be told how this collector fares", "NOTIFY_SOCKET", name, "error", err)
		return nil
	}
	s := &supervisor{conn: conn}
	if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		n, _ := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64) // 0 without a number
		s.watchdog = time.Duration(max(n, 0)) * time.Microsecond
	}
	return s
}

// send tells assignments such as READY=1 in one message. A manager that does not read costs
// a second at most.
func (s *supervisor) send(assignments ...string) {
	if s == nil {
		return
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = s.conn.Write([]byte(strings.Join(assignments, "\n"))) // a manager that has gone cannot be told
}

// reload tells the manager that f reads the configuration again.
func (s *supervisor) reload(f func()) {
	s.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic().Microseconds(), 10))
	f()
	s.send("READY=1")
}

// Bounds of watch: how often the status is told without a watchdog, and the least time for
// which the journal must have stalled, as the collector looks once a second.
const (
	statusEvery = 10 * time.Second
	leastStall  = 3 * time.Second
)

// watch tells the status, and feeds the watchdog while the journal gets on, until stop is
// called.
func (s *supervisor) watch(col *collector.Collector) (stop func()) {
	if s == nil {
		return func() {}
	}
	every := statusEvery
	if s.watchdog > 0 {
		every = min(every, s.watchdog/2)
	}
	return background(func(end <-chan struct{}) {
		tick := time.NewTicker(max(every, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if stalled := col.Stalled(); stalled > max(every, leastStall) {
				s.send("STATUS=the journal has hung for " + shortTime(stalled) + ": look at the disk")
				continue
			}
			alive := []string{"STATUS=" + status(col)} // it waits for the disk
			if s.watchdog > 0 {
				alive = append(alive, "WATCHDOG=1")
			}
			s.send(alive...)
		}
	})
}

// status is a line for systemctl status.
func status(col *collector.Collector) string {
	if err := col.Ready(); err != nil {
		return "lines are refused: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return stored(col)
}

func stored(col *collector.Collector) string {
	s := col.Stats()
	return fmt.Sprintf("%s stored since the start, %s in the journal", lines(int(s.Receive.Stored)), byteCount(s.Journal.Bytes))
}
