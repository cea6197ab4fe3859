//go:build unix

package file

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

func sendUSR1(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
}

func TestOnSignal(t *testing.T) {
	got := make(chan os.Signal, 1) // what nobody listens to would end the process
	signal.Notify(got, syscall.SIGUSR1)
	defer signal.Stop(got)
	called, closed := make(chan bool), make(chan struct{})
	for _, end := range []func(stop func()){func(stop func()) { stop() }, func(func()) { close(closed) }} {
		ended := make(chan bool)
		stop := onSignal(func() { called <- true }, closed, func() { close(ended) }, syscall.SIGUSR1)
		for range 2 {
			sendUSR1(t)
			<-called
			<-got
		}
		end(stop)
		<-ended
		stop()
		sendUSR1(t)
		<-got
		select {
		case <-called:
			t.Error("called after its end")
		default:
		}
	}
}
