// Package rpclog logs gRPC calls through rollway, by interceptors for servers and
// clients: one line per call, with an id that every line of a handler carries, and
// panics with their stack. It also logs the lines of the gRPC library itself.
package rpclog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rollway/rollway"
	"google.golang.org/grpc/grpclog"
)

// logger is immutable.
type logger struct {
	log       *rollway.Logger
	verbosity int
}

// NewLogger returns a logger for the lines of the gRPC library itself. It logs a lot
// at INFO; a name keeps that apart:
//
//	grpclog.SetLoggerV2(rpclog.NewLogger(log.Named("grpc"), 0))
//
// gRPC's Info, Warning, Error and Fatal become INFO, WARN, ERROR and FATAL; Fatal
// syncs every output and ends the process. V(l) is true up to verbosity, if log takes
// INFO. The source is the call in gRPC.
func NewLogger(log *rollway.Logger, verbosity int) grpclog.DepthLoggerV2 {
	return &logger{log: log, verbosity: verbosity}
}

func (g *logger) V(l int) bool {
	return l <= g.verbosity && g.log.Enabled(context.Background(), slog.LevelInfo)
}

// callSkip is the number of frames between the call of a rollway log method and the
// call of a function of google.golang.org/grpc/grpclog: write, print or its like, the
// method that gRPC calls and the function that calls it.
const callSkip = 4

func (g *logger) Info(args ...any)                 { g.print(slog.LevelInfo, args) }
func (g *logger) Infoln(args ...any)               { g.println(slog.LevelInfo, 0, args) }
func (g *logger) Infof(format string, args ...any) { g.printf(slog.LevelInfo, format, args) }
func (g *logger) InfoDepth(depth int, args ...any) { g.println(slog.LevelInfo, depth, args) }

func (g *logger) Warning(args ...any)                 { g.print(slog.LevelWarn, args) }
func (g *logger) Warningln(args ...any)               { g.println(slog.LevelWarn, 0, args) }
func (g *logger) Warningf(format string, args ...any) { g.printf(slog.LevelWarn, format, args) }
func (g *logger) WarningDepth(depth int, args ...any) { g.println(slog.LevelWarn, depth, args) }

func (g *logger) Error(args ...any)                 { g.print(slog.LevelError, args) }
func (g *logger) Errorln(args ...any)               { g.println(slog.LevelError, 0, args) }
func (g *logger) Errorf(format string, args ...any) { g.printf(slog.LevelError, format, args) }
func (g *logger) ErrorDepth(depth int, args ...any) { g.println(slog.LevelError, depth, args) }

func (g *logger) Fatal(args ...any)                 { g.print(rollway.LevelFatal, args) }
func (g *logger) Fatalln(args ...any)               { g.println(rollway.LevelFatal, 0, args) }
func (g *logger) Fatalf(format string, args ...any) { g.printf(rollway.LevelFatal, format, args) }
func (g *logger) FatalDepth(depth int, args ...any) { g.println(rollway.LevelFatal, depth, args) }

func (g *logger) print(level slog.Level, args []any) {
	if g.enabled(level) {
		g.write(level, 0, fmt.Sprint(args...))
	}
}

func (g *logger) printf(level slog.Level, format string, args []any) {
	if g.enabled(level) {
		g.write(level, 0, fmt.Sprintf(format, args...))
	}
}

func (g *logger) println(level slog.Level, depth int, args []any) {
	if g.enabled(level) {
		g.write(level, depth, strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	}
}

// enabled avoids formatting. A fatal line always ends the process.
func (g *logger) enabled(level slog.Level) bool {
	return level == rollway.LevelFatal || g.log.Enabled(context.Background(), level)
}

// write logs msg for the call depth frames above that of grpclog's function.
func (g *logger) write(level slog.Level, depth int, msg string) {
	log := g.log.WithCallerSkip(callSkip + depth)
	if level == rollway.LevelFatal {
		log.Fatal(context.Background(), msg)
		return
	}
	log.Log(context.Background(), level, msg)
}
