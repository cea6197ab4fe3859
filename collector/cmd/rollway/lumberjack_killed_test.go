package main

import (
	"testing"
	"time"

	lumber "github.com/elastic/go-lumber/client/v2"
)

// Clients of the Lumberjack protocol send again what was not acknowledged as the collector
// was killed. So every event is stored, some twice: those whose acknowledgement was lost.
func TestLumberjackKilled(t *testing.T) {
	const windows, each = 20, 50
	window := func(w int) (list []any) {
		for i := range each {
			list = append(list, map[string]int{"n": w*each + i})
		}
		return list
	}
	t.Run("sync", func(t *testing.T) {
		k := startKiller(t, "-listen-lumberjack", 5)
		for w := 0; w < windows; {
			c, err := lumber.SyncDial(k.ln.Addr().String(), lumber.CompressionLevel(3), lumber.Timeout(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			for ; w < windows && err == nil; w++ {
				_, err = c.Send(window(w))
			}
			if c.Close(); err != nil {
				w--
			}
		}
		k.finish(windows * each)
	})
	t.Run("async", func(t *testing.T) {
		k := startKiller(t, "-listen-lumberjack", 5)
		var acked [windows]bool // of the client's goroutine, until it is closed
		for done := false; !done; {
			c, err := lumber.AsyncDial(k.ln.Addr().String(), 4, lumber.Timeout(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			called := make(chan struct{}, windows)
			sent := 0
			for w := 0; w < windows && err == nil; w++ {
				if acked[w] {
					continue
				}
				sent++
				err = c.Send(func(_ uint32, err error) {
					acked[w] = err == nil
					called <- struct{}{}
				}, window(w))
			}
			for range sent {
				<-called
			}
			c.Close()
			done = true
			for _, ok := range acked {
				done = done && ok
			}
		}
		k.finish(windows * each)
	})
}

// finish has no more kills come and waits for n events.
func (k *killer) finish(n int) {
	k.mu.Lock()
	left := k.kills
	k.kills = 0
	k.mu.Unlock()
	if left > 3 {
		k.t.Errorf("%d kills are left: the clients met none", left)
	}
	k.await(n)
}
