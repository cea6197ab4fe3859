// Command bulk logs large records from many goroutines through a slab.Writer with
// several shards, past the page cache, as docs/DEPLOYMENT.md describes it: metrics
// for Prometheus at /metrics, the file opened anew on SIGHUP, an orderly end on
// Ctrl-C or SIGTERM. It makes its load itself, so that a disk can be tried:
//
//	go run ./examples/bulk -path /var/log/payment/payment.log -threads 100 -rate 300 -record 300000 -for 10s
//	curl http://127.0.0.1:9400/metrics
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

func main() {
	path := flag.String("path", "payment.log", "file to log to")
	listen := flag.String("listen", "127.0.0.1:9400", "address of /metrics")
	threads := flag.Int("threads", 100, "goroutines that log at the same time")
	rate := flag.Float64("rate", 100, "records a second of all of them together")
	size := flag.Int("record", 300_000, "bytes of a record")
	buffer := flag.Int("buffer", 64<<20, "bytes of a set of slabs, one for each shard; there are two sets")
	maxSize := flag.Int64("max-size", 0, "bytes at which the file is rotated; 0: never")
	keep := flag.Int("keep", 0, "rotated files to keep; 0: all")
	giveUp := flag.Duration("give-up", 0, "drop a slab that could not be written for this time; 0: never")
	lasting := flag.Duration("for", 0, "end after this time; 0: on a signal only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *lasting > 0 {
		ctx, stop = context.WithTimeout(ctx, *lasting)
		defer stop()
	}
	tell := func(err error) { fmt.Fprintln(os.Stderr, err) }
	shards := max(1, min(*threads/12, 64))
	to := file.Options{Mode: file.Direct, MaxSize: *maxSize, KeepCount: *keep, OnError: tell}
	o := slab.Options{
		Shards: shards, SlabSize: *buffer / shards, SlabCount: 2 * shards,
		Full: slab.Drop, FlushInterval: 10 * time.Second, GiveUp: *giveUp, OnError: tell,
	}
	if err := run(ctx, *path, to, o, *listen, *threads, *rate, *size); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, to file.Options, o slab.Options, listen string, threads int, rate float64, size int) error {
	if threads < 1 || rate <= 0 || size < 1 {
		return errors.New("bulk: -threads, -rate and -record are more than 0")
	}
	f, err := file.Open(path, to)
	if err != nil {
		return err
	}
	log, err := slab.New(f, o)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer f.ReopenOn(syscall.SIGHUP)()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	defer listener.Close()
	fmt.Printf("metrics at http://%s/metrics\n", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_ = log.Stats().WriteMetrics(w, "log", "payment")
		_ = f.Stats().WriteMetrics(w, "log", "payment")
	})
	go func() { _ = http.Serve(listener, mux) }()

	load(ctx, log, threads, rate, size)
	err = log.Close()
	s := log.Stats()
	fmt.Printf("accepted %d, written %d, dropped %d, pending %d\n", s.Accepted, s.Written, s.Dropped.Total(), s.Pending)
	mean := s.WriteTime / time.Duration(max(1, s.Writes))
	fmt.Printf("writes %d, mean %v, max %v; slabs %d × %d bytes\n", s.Writes, mean, s.WriteMax, o.SlabCount, o.SlabSize)
	return err
}

// load gives records at an even rate until ctx ends, each goroutine its share.
func load(ctx context.Context, log *slab.Writer, threads int, rate float64, size int) {
	every := time.Duration(float64(threads) / rate * float64(time.Second))
	var all sync.WaitGroup
	for i := range threads {
		all.Go(func() {
			record := append([]byte(`{"body":"`), bytes.Repeat([]byte("x"), max(0, size-11))...)
			record = append(record, "\"}\n"...)
			due := time.Now().Add(every * time.Duration(i) / time.Duration(threads))
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Until(due)):
				}
				due = due.Add(every)
				_, _ = log.Write(record) // a record that found no room is counted
			}
		})
	}
	all.Wait()
}
