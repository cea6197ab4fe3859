//go:build unix

package onsignal

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

func send(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
}

func TestCall(t *testing.T) {
	got := make(chan os.Signal, 1) // what nobody listens to would end the process
	signal.Notify(got, syscall.SIGUSR1)
	defer signal.Stop(got)
	called, closed := make(chan bool), make(chan struct{})
	for _, end := range []func(stop func()){func(stop func()) { stop() }, func(func()) { close(closed) }} {
		ended := make(chan bool)
		stop := Call(func() { called <- true }, closed, func() { close(ended) }, syscall.SIGUSR1)
		for range 2 {
			send(t)
			<-called
			<-got
		}
		end(stop)
		<-ended
		stop()
		send(t)
		<-got
		select {
		case <-called:
			t.Error("called after its end")
		default:
		}
	}
	Call(nil, nil, nil)() // of no signals, not of all
}
