package rollway

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// FlushOnPanic is to be deferred in main and in functions that run on
// goroutines of their own. Where the function panics, it logs what it panicked
// with at PANIC with the stack, flushes every output within
// Options.ExitTimeout, and goes on panicking:
//
//	defer log.FlushOnPanic()
func (l *Logger) FlushOnPanic() {
	if r := recover(); r != nil {
		l.Log(context.Background(), LevelPanic, "panic: "+safeSprint(r), slog.String("stack", stack(1)))
		l.flushToExit()
		panic(r)
	}
}

// FlushOnSignal flushes every output when one of the signals comes, within
// Options.ExitTimeout, and then ends the process with status 128 + the signal's
// number through Options.Exit, as the shell has it. It is for programs that do
// not shut down by themselves; those call Shutdown. Without arguments it is for
// os.Interrupt and SIGTERM. stop ends it and waits for its goroutine; it must
// not be called by Options.Exit.
func (l *Logger) FlushOnSignal(signals ...os.Signal) (stop func()) {
	if len(signals) == 0 {
		signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	ch := make(chan os.Signal, 1)
	done, ended := make(chan struct{}), make(chan struct{})
	signal.Notify(ch, signals...)
	go func() {
		defer close(ended)
		select {
		case sig := <-ch:
			l.Info(context.Background(), "signal: "+sig.String())
			l.flushToExit()
			l.core.exit(128 + signalNumber(sig))
		case <-done:
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() {
			signal.Stop(ch)
			close(done)
		})
		<-ended
	}
}
