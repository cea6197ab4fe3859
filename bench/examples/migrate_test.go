package examples

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/MIGRATE.md"

// given is what the cells of docs/MIGRATE.md may name.
const given = `package main

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
)

func count() int { return 0 }
func cleanUp()   {}

type anyUser struct{}

func (anyUser) AppendLog(*rollway.Object)                     {}
func (anyUser) MarshalLogObject(zapcore.ObjectEncoder) error  { return nil }
func (anyUser) MarshalZerologObject(*zerolog.Event)           {}

func ofZap() {
	var (
		logger      *zap.Logger
		sugar       *zap.SugaredLogger
		atomic      zap.AtomicLevel
		core, other zapcore.Core
		encoder     zapcore.Encoder
	)
	CELLS zap
}

func ofZerolog() {
	var (
		zlog zerolog.Logger
		hook zerolog.Hook
	)
	CELLS zerolog
}

func ofSlog() {
	CELLS slog
}

func ofLogrus() {
	var hook logrus.Hook
	CELLS logrus
}

func main() {
	_, _, _, _ = ofZap, ofZerolog, ofSlog, ofLogrus
	_, _, _ = fmt.Sprint, http.Handle, os.Exit
	_, _, _, _ = httplog.Middleware, production.Open, rollwaytest.New, stdlog.New
	_, _, _, _ = diode.NewWriter, hlog.NewHandler, test.NewNullLogger, observer.New
}
`

// cell is the code of a table's cell, or a piece of code in the text above a table.
type cell struct {
	line int
	code []string
}

// cells returns the code of each guide of the page by its heading.
func cells(t *testing.T, text string) map[string][]cell {
	guides := map[string][]cell{}
	guide, inTable := "", false
	for i, line := range strings.Split(text, "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			guide = heading
		}
		columns := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasPrefix(line, "|---"):
			inTable = true
		case inTable && len(columns) != 2:
			t.Errorf("docs/MIGRATE.md:%d: a row has an old and a new call", i+1)
		case inTable:
			for _, column := range columns {
				c := cell{i + 1, nil}
				for _, code := range inCode.FindAllStringSubmatch(column, -1) {
					if !isName.MatchString(code[1]) { // a method that is spoken of
						c.code = append(c.code, code[1])
					}
				}
				if len(c.code) == 0 {
					t.Errorf("docs/MIGRATE.md:%d: no code in %q", i+1, column)
				}
				guides[guide] = append(guides[guide], c)
			}
		}
	}
	return guides
}

var (
	inCode = regexp.MustCompile("`([^`]+)`")
	isName = regexp.MustCompile(`^(\w+|e\.GetCtx\(\))$`)
)

// function returns a function with the cell's code, in which nothing is unused.
func (c cell) function() string {
	var b strings.Builder
	b.WriteString("_ = func() {\n")
	for _, code := range c.code {
		expr, err := parser.ParseExpr(code)
		if _, call := expr.(*ast.CallExpr); err == nil && !call {
			code = "_ = " + code
		}
		fmt.Fprintf(&b, "//line MIGRATE.md:%d\n%s\n", c.line, code)
		if name, _, declares := strings.Cut(code, " := "); declares && !strings.HasPrefix(code, "if ") {
			fmt.Fprintf(&b, "_ = %s\n", name)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// TestMigrate compiles every cell of the tables of docs/MIGRATE.md.
func TestMigrate(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	program := given
	for guide, cells := range cells(t, string(text)) {
		var b strings.Builder
		for _, c := range cells {
			b.WriteString(c.function())
		}
		if len(cells) < 20 || !strings.Contains(program, "CELLS "+guide+"\n") {
			t.Errorf("the guide %q has %d cells", guide, len(cells))
		}
		program = strings.Replace(program, "CELLS "+guide+"\n", b.String(), 1)
	}
	if out, err := compile(t, program); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// A cell that does not compile is found, with its line.
	bad := strings.Replace(program, `log.Info(ctx, "charged", slog.String("customer", id))`, `log.Inform(ctx, "charged")`, 1)
	if out, err := compile(t, bad); err == nil || !regexp.MustCompile(`MIGRATE\.md:\d+:\d+: log\.Inform undefined`).Match(out) {
		t.Errorf("a wrong cell: %v\n%s", err, out)
	}
}

func compile(t *testing.T, program string) ([]byte, error) {
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-gcflags=-e", "-o", os.DevNull, path).CombinedOutput()
	return bytes.TrimSpace(out), err
}
