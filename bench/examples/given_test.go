package examples

// This file is what the cells of docs/MIGRATE.md may name. TestMigrate puts them where it says
// CELLS and compiles it as a program.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/logruslog"
	"github.com/rollway/rollway/bridge/zaplog"
	"github.com/rollway/rollway/httplog"
	"github.com/rollway/rollway/preset"
	"github.com/rollway/rollway/production"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
	"github.com/rollway/rollway/stdlog"
	"github.com/rs/zerolog"
	"github.com/rs/zerolog/diode"
	"github.com/rs/zerolog/hlog"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

var (
	ctx           = context.Background()
	log           *rollway.Logger
	levels        *rollway.Levels
	console, file rollway.Output
	lines         *slab.Writer
	extract       func(context.Context, []slog.Attr) []slog.Attr
	t             *testing.T

	id    string
	n     int
	d     time.Duration
	at    time.Time
	err   error
	order struct{ ID string }
	user  anyUser
	tags  []string
	body  []byte
	raw   json.RawMessage
	addr  net.IP

	logger *slog.Logger
	level  slog.LevelVar
	a, b   slog.Handler

	replace func([]string, slog.Attr) slog.Attr
)

func count() int { return 0 }
func cleanUp()   {}

type anyUser struct{}

func (anyUser) AppendLog(*rollway.Object)                    {}
func (anyUser) MarshalLogObject(zapcore.ObjectEncoder) error { return nil }
func (anyUser) MarshalZerologObject(*zerolog.Event)          {}

func ofZap() {
	var (
		logger      *zap.Logger
		sugar       *zap.SugaredLogger
		atomic      zap.AtomicLevel
		core, other zapcore.Core
		encoder     zapcore.Encoder
	)
	_, _, _, _, _, _ = logger, sugar, atomic, core, other, encoder
	// CELLS zap
}

func ofZerolog() {
	var (
		zlog zerolog.Logger
		hook zerolog.Hook
	)
	_, _ = zlog, hook
	// CELLS zerolog
}

func ofSlog() {
	// CELLS slog
}

func ofLogrus() {
	var hook logrus.Hook
	_ = hook
	// CELLS logrus
}

// What the compiler and staticcheck would miss if no cell named it.
var _ = []any{
	ofZap, ofZerolog, ofSlog, ofLogrus, count, cleanUp, fmt.Sprint, http.Handle, os.Exit, httplog.Middleware, production.Open, rollwaytest.New, stdlog.New,
	preset.Zap, diode.NewWriter, hlog.NewHandler, test.NewNullLogger, observer.New, zaplog.New, logruslog.New,
	ctx, log, levels, console, file, lines, extract, t, id, n, d, at, err, order, user, tags, body, raw, addr, logger, &level, a, b, replace,
}
