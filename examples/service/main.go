// Command service is an HTTP service that ships its log lines to a collector.
// A request costs it one encoding and one copy per line: a goroutine of its own
// batches the lines and posts them. On Ctrl-C or SIGTERM it finishes the
// requests it has, delivers the lines it has, and says so if it could not.
//
// Start a collector (make run), then
//
//	go run ./examples/service
//	curl -d 4200 http://127.0.0.1:8080/charge
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	collector := flag.String("collector", "http://127.0.0.1:4318/api/logs", "where the lines go")
	spill := flag.String("spill", "spill", "folder in which they wait while the collector is away")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *collector, *spill); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, collector, spill string) error {
	peer, err := remote.Open(collector, remote.Options{Spill: remote.Spill{Dir: spill}})
	if err != nil {
		return err
	}
	// While the collector is away the lines go to the disk. Where that cannot take
	// them either, new ones are lost, counted and announced, and a request waits
	// for 100 ms at most, once. slab.Block would hold it up.
	lines, err := slab.New(peer, slab.Options{})
	if err != nil {
		return err
	}
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{
		{Writer: lines, Level: slog.LevelInfo},
		{Writer: os.Stderr, Level: slog.LevelWarn, Encoder: rollway.Console{}},
	}})
	if err != nil {
		return err
	}
	// The fixed key service tells this program's lines from others'.
	serveErr := serve(ctx, log.With(slog.String("service", "payments")), listen)

	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(serveErr, log.Shutdown(end))
}

func serve(ctx context.Context, log *rollway.Logger, listen string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charge", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		cents, err := strconv.Atoi(strings.TrimSpace(string(body)))
		if err != nil {
			log.Warn(r.Context(), "refused", slog.Any("error", err))
			http.Error(w, "want an amount in cents", http.StatusBadRequest)
			return
		}
		log.Info(r.Context(), "charged", slog.Int("cents", cents), slog.Duration("took", time.Since(begin)))
		fmt.Fprintf(w, "charged %d cents\n", cents)
	})
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelError),
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	log.Info(ctx, "started", slog.String("addr", listener.Addr().String()))

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info(context.Background(), "stopping")
	end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return server.Shutdown(end)
}
