// Package grpclog logs what gRPC does through rollway: one line per call, by
// interceptors for servers and clients, with an id that every line of a handler
// carries, panics with their stack; and the lines of the gRPC library itself.
package grpclog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rollway/rollway"
	"google.golang.org/grpc/grpclog"
)

// Logger is a grpclog.DepthLoggerV2 over a rollway Logger. It is immutable and
// safe for concurrent use.
type Logger struct {
	log       *rollway.Logger
	verbosity int
}

var _ grpclog.DepthLoggerV2 = (*Logger)(nil)

// NewLogger returns a Logger for the lines of the gRPC library itself, which
// tells much at INFO; a name keeps that apart:
//
//	grpclog.SetLoggerV2(rollgrpc.NewLogger(log.Named("grpc"), 0))
//
// gRPC's Info, Warning, Error and Fatal become INFO, WARN, ERROR and FATAL; the
// latter flushes every output and ends the process. Its V(l) is true up to the
// verbosity given and where log takes INFO. The source is the call in gRPC.
func NewLogger(log *rollway.Logger, verbosity int) *Logger {
	return &Logger{log: log, verbosity: verbosity}
}

// V reports whether lines of verbosity l are to be logged.
func (g *Logger) V(l int) bool {
	return l <= g.verbosity && g.log.Enabled(context.Background(), slog.LevelInfo)
}

// callSkip is how many frames lie between the call of a rollway log method and
// the call of a function of google.golang.org/grpc/grpclog: write, print or its
// like, the method that gRPC calls and the function that calls it.
const callSkip = 4

// Info logs at INFO in the manner of fmt.Print.
func (g *Logger) Info(args ...any) { g.print(slog.LevelInfo, args) }

// Infoln logs at INFO in the manner of fmt.Println.
func (g *Logger) Infoln(args ...any) { g.println(slog.LevelInfo, 0, args) }

// Infof logs at INFO in the manner of fmt.Printf.
func (g *Logger) Infof(format string, args ...any) { g.printf(slog.LevelInfo, format, args) }

// InfoDepth is Infoln for a call depth frames further up.
func (g *Logger) InfoDepth(depth int, args ...any) { g.println(slog.LevelInfo, depth, args) }

// Warning logs at WARN in the manner of fmt.Print.
func (g *Logger) Warning(args ...any) { g.print(slog.LevelWarn, args) }

// Warningln logs at WARN in the manner of fmt.Println.
func (g *Logger) Warningln(args ...any) { g.println(slog.LevelWarn, 0, args) }

// Warningf logs at WARN in the manner of fmt.Printf.
func (g *Logger) Warningf(format string, args ...any) { g.printf(slog.LevelWarn, format, args) }

// WarningDepth is Warningln for a call depth frames further up.
func (g *Logger) WarningDepth(depth int, args ...any) {
	g.println(slog.LevelWarn, depth, args)
}

// Error logs at ERROR in the manner of fmt.Print.
func (g *Logger) Error(args ...any) { g.print(slog.LevelError, args) }

// Errorln logs at ERROR in the manner of fmt.Println.
func (g *Logger) Errorln(args ...any) { g.println(slog.LevelError, 0, args) }

// Errorf logs at ERROR in the manner of fmt.Printf.
func (g *Logger) Errorf(format string, args ...any) { g.printf(slog.LevelError, format, args) }

// ErrorDepth is Errorln for a call depth frames further up.
func (g *Logger) ErrorDepth(depth int, args ...any) {
	g.println(slog.LevelError, depth, args)
}

// Fatal logs at FATAL in the manner of fmt.Print, flushes and ends the process.
func (g *Logger) Fatal(args ...any) { g.print(rollway.LevelFatal, args) }

// Fatalln logs at FATAL in the manner of fmt.Println, flushes and ends the
// process.
func (g *Logger) Fatalln(args ...any) { g.println(rollway.LevelFatal, 0, args) }

// Fatalf logs at FATAL in the manner of fmt.Printf, flushes and ends the
// process.
func (g *Logger) Fatalf(format string, args ...any) { g.printf(rollway.LevelFatal, format, args) }

// FatalDepth is Fatalln for a call depth frames further up.
func (g *Logger) FatalDepth(depth int, args ...any) {
	g.println(rollway.LevelFatal, depth, args)
}

func (g *Logger) print(level slog.Level, args []any) {
	if g.enabled(level) {
		g.write(level, 0, fmt.Sprint(args...))
	}
}

func (g *Logger) printf(level slog.Level, format string, args []any) {
	if g.enabled(level) {
		g.write(level, 0, fmt.Sprintf(format, args...))
	}
}

func (g *Logger) println(level slog.Level, depth int, args []any) {
	if g.enabled(level) {
		g.write(level, depth, strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	}
}

// enabled spares the formatting. A fatal line is never without its end.
func (g *Logger) enabled(level slog.Level) bool {
	return level == rollway.LevelFatal || g.log.Enabled(context.Background(), level)
}

// write logs msg for the call depth frames above that of grpclog's function.
func (g *Logger) write(level slog.Level, depth int, msg string) {
	log := g.log.WithCallerSkip(callSkip + depth)
	if level == rollway.LevelFatal {
		log.Fatal(context.Background(), msg)
		return
	}
	log.Log(context.Background(), level, msg)
}
