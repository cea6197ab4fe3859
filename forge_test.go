package rollway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// unprintables are what a terminal or a viewer of lines could act on.
var unprintables = func() []string {
	list := []string{"\x00", "\x1b[31m", "\x7f", "\u2028", "\u2029", "\xff", "\xc2", "\u200b", "\ufeff", "\u061c", "\U000e0001", "\xed\xa0\x80", "\x9b", "\u00a0", "\ufff9"}
	for c := '\u0080'; c <= '\u009f'; c++ {
		list = append(list, string(c))
	}
	for c := '\u202a'; c <= '\u202e'; c++ {
		list = append(list, string(c), string(c-'\u202a'+'\u2066'))
	}
	for c := range ' ' {
		list = append(list, string(c))
	}
	return list
}()

// TestNothingIsForged holds every place that a caller fills to what a text line
// may consist of: one record, printable, and fields that only the Logger made.
func TestNothingIsForged(t *testing.T) {
	hostile := append([]string{
		"x level=ERROR y", `x" level=ERROR "`, `x\" level=ERROR`, "x\nlevel=ERROR", "x\r\n    at main.f", " level=ERROR", "a=b", `a\`, `"`, "=", `\n level=ERROR`,
	}, unprintables...)
	for _, enc := range []Encoder{Logfmt{}, Logfmt{Errors: ErrorDetail, Layout: "msg attrs:a level error logger"}, Console{}, Console{Errors: ErrorDetail, Layout: "msg level:level logger:n attrs error"}} {
		for _, h := range hostile {
			for where, log := range map[string]func(l *Logger){
				"message":   func(l *Logger) { l.Info(context.Background(), h) },
				"key":       func(l *Logger) { l.Info(context.Background(), "m", slog.Int(h, 1)) },
				"string":    func(l *Logger) { l.Info(context.Background(), "m", slog.String("k", h)) },
				"error":     func(l *Logger) { l.Info(context.Background(), "m", slog.Any("error", errors.New(h))) },
				"wrapped":   func(l *Logger) { l.Info(context.Background(), "m", slog.Any("e", fmt.Errorf("%w", errors.New(h)))) },
				"name":      func(l *Logger) { l.Named(h).Info(context.Background(), "m") },
				"group":     func(l *Logger) { l.WithGroup(h).Info(context.Background(), "m", slog.Int("k", 1)) },
				"in group":  func(l *Logger) { l.Info(context.Background(), "m", slog.Group(h, slog.String(h, h))) },
				"With":      func(l *Logger) { l.With(slog.String(h, h), slog.String("service", h)).Info(context.Background(), "m") },
				"context":   func(l *Logger) { l.Info(ContextWith(context.Background(), slog.String(h, h)), "m") },
				"bytes":     func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", []byte(h))) },
				"struct":    func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", struct{ A string }{h})) },
				"map":       func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", map[string]string{h: h})) },
				"list":      func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", []string{h})) },
				"panic":     func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", panics{h})) },
				"stringer":  func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", stringer(h))) },
				"LogValuer": func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", panickingWith{h})) },
				"stack":     func(l *Logger) { l.Info(context.Background(), "m", slog.String("stack", h+"\n\t"+h)) },
				"object":    func(l *Logger) { l.Info(context.Background(), "m", slog.Any("k", &user{1, tags{h}})) },
			} {
				l, b := newTestLogger(t, enc)
				log(l)
				checkText(t, fmt.Sprintf("%#v: %s of %q", enc, where, h), enc, b.String())
			}
		}
	}
}

type panics struct{ text string }

func (p panics) Error() string { panic(p.text) }

type panickingWith struct{ text string }

func (p panickingWith) LogValue() slog.Value { panic(p.text) }

type stringer string

func (s stringer) String() string { return string(s) }

// checkText fails t where line is not one record, or holds what is not
// printable, or where a reader who splits it at spaces outside quotes finds the
// level ERROR, which was not logged.
func checkText(t testing.TB, what string, enc Encoder, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if _, ok := enc.(Logfmt); ok && len(lines) != 1 {
		t.Fatalf("%s: %d lines: %q", what, len(lines), text)
	}
	for i, line := range lines {
		if !utf8.ValidString(line) {
			t.Fatalf("%s: not UTF-8: %q", what, text)
		}
		for _, r := range line {
			if r != utf8.RuneError && mayForge(r) {
				t.Fatalf("%s: holds %U: %q", what, r, text)
			}
		}
		if below := strings.HasPrefix(line, "    "); below != (i > 0) {
			t.Fatalf("%s: line %d could be taken for another: %q", what, i, text)
		}
	}
	for _, word := range words(lines[0]) {
		if word == "level=ERROR" {
			t.Fatalf("%s: a field is forged: %q", what, text)
		}
	}
}

// words splits a line at the spaces that are not between quotes.
func words(line string) []string {
	var list []string
	start, quoted := 0, false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quoted:
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ' ' && !quoted:
			list = append(list, line[start:i])
			start = i + 1
		}
	}
	return append(list, line[start:])
}

// FuzzText is TestNothingIsForged for whatever comes, with every place filled
// at once.
func FuzzText(f *testing.F) {
	f.Add("msg", "key", "value", "error", "name")
	f.Add("a\nb\x1b[0m", "k=\"", "\x9b\xc2\x9b\u202e\u2066", "x\n    y", "n: m")
	f.Add("    at", "stack", "a\n\tb\nc", "\u2028", "")
	f.Add(` "`, `"`, ` level=ERROR"`, `\`, `"`)
	encoders := []Encoder{Logfmt{}, Logfmt{Errors: ErrorDetail, Layout: "msg level attrs:a error:e logger"}, Console{}, Console{Errors: ErrorDetail, Bytes: BytesBase64, Layout: "attrs logger:n msg:msg level:level error"}}
	f.Fuzz(func(t *testing.T, msg, key, value, errText, name string) {
		for _, enc := range encoders {
			l, b := newTestLogger(t, enc)
			l.Named(name).With(slog.String(key, value), slog.Any("error", errors.New(errText))).WithGroup(name).Info(
				ContextWith(t.Context(), slog.String(key, value)), msg,
				slog.String(key, value), slog.Any("e", fmt.Errorf("%s: %w", errText, io.EOF)), slog.Any("b", []byte(value)),
				slog.Any("m", map[string]any{key: value}), slog.Group(key, slog.Any(key, &user{1, tags{value}})))
			checkText(t, fmt.Sprintf("%#v", enc), enc, b.String())
		}
	})
}

// mayForge reports whether r could end a line, move the cursor or reorder text.
func mayForge(r rune) bool {
	return r < ' ' || r == 0x7f || r >= utf8.RuneSelf && !unicode.IsPrint(r)
}
